#include "train/engine/models/kept_models.hpp"

#include "core/base/files/files.hpp"

#include <algorithm>
#include <string>
#include <system_error>

namespace mylos::train {

namespace fs = std::filesystem;

fs::path kept_model_path(std::size_t step) { return fs::path(kept_models_name) / std::to_string(step); }

void keep_best_as(const fs::path& output, std::size_t step) {
  const fs::path best = output / "best", kept = output / kept_model_path(step);
  if (fs::exists(kept) || !fs::exists(best)) return;
  StagedDirectory staged(kept);
  for (const DirectoryEntry& entry : list_directory(best)) {
    std::error_code no_links;
    fs::create_hard_link(best / entry.name, staged.path() / entry.name, no_links);
    if (no_links) fs::copy(best / entry.name, staged.path() / entry.name);
  }
  staged.commit();
}

void remove_other_models(const fs::path& output, const BestModel::State& state) {
  const fs::path models = output / kept_models_name;
  if (!fs::exists(models)) return;
  for (const DirectoryEntry& entry : list_directory(models)) {
    const bool is_kept = std::ranges::any_of(state.kept, [&](const ScoredStep& each) {
      return each.step != state.step && std::to_string(each.step) == entry.name;
    });
    if (!is_kept) fs::remove_all(models / entry.name);
  }
}

}  // namespace mylos::train
