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

/// Returns the most likely labels of each picture in descending order, five or as many as the model has. Uses the model
/// of `run`. Errors: std::runtime_error naming a picture that cannot be read, or the model if it has no weights.
std::vector<std::vector<LikelyLabel>> classify_images(const RunConfig& run,
                                                      std::span<const std::filesystem::path> files,
                                                      const Notice& notice);

}  // namespace mylos::tasks
