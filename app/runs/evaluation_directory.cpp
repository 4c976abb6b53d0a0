#include "app/runs/evaluation_directory.hpp"

#include "app/options/config_file.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"

#include <fmt/format.h>

#include <array>

namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::array written_names = {EvaluationDirectory::record_file, "predictions.json", "predictions.jsonl",
                                      "nbest_predictions.json",         "null_odds.json",   "results.json"};

bool is_evaluation(const fs::path& path) {
  std::error_code unreadable;  // then it is not an evaluation
  const fs::path file = path / EvaluationDirectory::record_file;
  if (!fs::is_regular_file(file, unreadable)) return false;
  const OrderedJson record = try_parse_ordered_json(read_text(file));
  return record.is_object() && record.contains(program_key) && record[program_key].is_object();
}

void refuse_foreign_results(const fs::path& path) {
  if (is_evaluation(path)) return;
  for (const char* name : written_names) {
    std::error_code unreadable;  // reported by the code that writes there
    if (!fs::exists(path / name, unreadable) || fs::is_empty(path / name, unreadable)) continue;
    fail(
        fmt::format("--output {}: contains {}, but no {} of mylos eval; choose another directory, or replace it with "
                    "--overwrite",
                    path.string(), name, EvaluationDirectory::record_file));
  }
}

}  // namespace

EvaluationDirectory::EvaluationDirectory(const fs::path& path, bool overwrite) : path_(path) {
  std::error_code unreadable;  // reported by the attempt to write
  ensure(!fs::exists(path / "run.json", unreadable),
         fmt::format("--output {}: contains a training run, whose scores would be replaced; choose another directory",
                     path.string()));
  if (!overwrite) refuse_foreign_results(path);
  for (fs::path each = fs::absolute(path); !fs::exists(each, unreadable) && each != each.root_path();
       each = each.parent_path()) {
    made_.push_back(each);
  }
  const StagedFile probe(path / "predictions.json");
}

EvaluationDirectory::~EvaluationDirectory() {
  std::error_code ignored;  // a directory that is not empty stays
  for (const fs::path& each : made_) fs::remove(each, ignored);
}

void EvaluationDirectory::begin(const OrderedJson& record) const {
  write_text(path_ / record_file, record.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

}  // namespace mylos::app
