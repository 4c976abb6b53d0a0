#include "train/engine/evaluation_files.hpp"

#include "core/base/files/files.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <system_error>

namespace mylos::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* best_note = "best";

}  // namespace

std::vector<KeptEvaluation> list_evaluations(const fs::path& directory) {
  std::vector<KeptEvaluation> kept;
  std::error_code none;
  for (fs::directory_iterator entry(directory / evaluations_name, none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    const char* const last = name.data() + name.size();
    std::size_t step = 0;
    const auto [rest, error] = std::from_chars(name.data(), last, step);
    if (error == std::errc() && std::string_view(rest, last) == ".json") kept.push_back({step, entry->path()});
  }
  std::ranges::sort(kept, {}, &KeptEvaluation::step);
  return kept;
}

void keep_evaluation(const fs::path& directory, std::size_t step, std::string_view answers) {
  fs::create_directories(directory / evaluations_name);
  write_text(directory / evaluations_name / (std::to_string(step) + ".json"), answers);
}

void note_best(const fs::path& directory, std::size_t step) {
  fs::create_directories(directory / evaluations_name);
  write_text(directory / evaluations_name / best_note, std::to_string(step) + "\n");
}

std::optional<std::size_t> noted_best(const fs::path& directory) {
  std::size_t step = 0;
  if (!(std::ifstream(directory / evaluations_name / best_note) >> step)) return std::nullopt;
  return step;
}

void cut_evaluations(const fs::path& directory, std::size_t step, bool evaluation_due) {
  for (const KeptEvaluation& evaluation : list_evaluations(directory)) {
    if (evaluation.step > step || (evaluation.step == step && evaluation_due)) fs::remove(evaluation.file);
  }
}

}  // namespace mylos::train
