#include "train/engine/kept_models.hpp"

#include "core/base/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kept_prefix = "best-";

std::optional<std::size_t> step_of_model(std::string_view name) {
  if (!name.starts_with(kept_prefix)) return std::nullopt;
  name.remove_prefix(kept_prefix.size());
  std::size_t step = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && rest == name.data() + name.size() ? std::optional(step) : std::nullopt;
}

}  // namespace

std::string kept_model_name(std::size_t step) { return fmt::format("{}{}", kept_prefix, step); }

bool is_kept_model_name(std::string_view name) { return step_of_model(name).has_value(); }

void keep_best_as(const fs::path& output, std::size_t step) {
  const fs::path best = output / "best", kept = output / kept_model_name(step);
  if (fs::exists(kept) || !fs::exists(best)) return;
  StagedDirectory staged(kept);
  std::error_code no_links;
  fs::copy(best, staged.path(), fs::copy_options::recursive | fs::copy_options::create_hard_links, no_links);
  if (no_links) fs::copy(best, staged.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  staged.commit();
}

void remove_other_models(const fs::path& output, std::span<const ScoredStep> kept) {
  for (const DirectoryEntry& entry : list_directory(output)) {
    const std::optional<std::size_t> step = step_of_model(entry.name);
    if (step && std::ranges::find(kept, *step, &ScoredStep::step) == kept.end()) fs::remove_all(output / entry.name);
  }
}

}  // namespace mylos::train
