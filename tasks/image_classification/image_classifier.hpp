#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace mylos::tasks {

struct LikelyLabel {
  std::string label;
  double probability = 0.0;
};

/// The likeliest labels of each picture, five or as many as the model has, the likeliest first, by the model of `run`.
/// Errors: std::runtime_error naming a picture that cannot be read, or the model where it has no weights.
std::vector<std::vector<LikelyLabel>> classify_images(const RunConfig& run,
                                                      std::span<const std::filesystem::path> files,
                                                      const Notice& notice);

}  // namespace mylos::tasks
