#pragma once

#include "tasks/image_classification/image_mistakes.hpp"
#include "train/monitor/run_record.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// The images that a run classified wrongly, with their pictures.
namespace mylos::tasks {

struct MistakePicture {
  std::string png;      ///< PNG file, at most 224 pixels wide and high; empty if it cannot be read
  std::string problem;  ///< reason why it cannot be read
  std::size_t width = 0, height = 0;
};

struct RunMistakes {
  std::string origin;  ///< "step 500, the best evaluation"
  ImageMistakes mistakes;
  std::vector<MistakePicture> pictures;  ///< one for each of the worst mistakes, or empty
  std::string problem;                   ///< reason why there are no pictures; empty if there are
};

/// Returns the mistakes of the best evaluation that the run kept, with pictures from the data that run.json names if it
/// is unchanged; nullopt if no evaluation was kept. Errors: std::runtime_error naming the file of the evaluation.
std::optional<RunMistakes> read_run_mistakes(const train::RunRecord& run);

}  // namespace mylos::tasks
