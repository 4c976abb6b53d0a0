#pragma once

#include "tasks/image_classification/image_mistakes.hpp"
#include "train/monitor/run_record.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// The images that a run classifies wrongly, with their pictures.
namespace mylos::tasks {

struct MistakePicture {
  std::string png;      ///< the file, at most 224 pixels wide and high; empty where it cannot be read
  std::string problem;  ///< why
  std::size_t width = 0, height = 0;
};

struct RunMistakes {
  std::string origin;  ///< "step 500, the best evaluation"
  ImageMistakes mistakes;
  std::vector<MistakePicture> pictures;  ///< one for each of the worst, or none at all:
  std::string problem;                   ///< why there are none; empty where there are
};

/// Those of the best evaluation that the run kept, with the pictures of the data that run.json names, where that is
/// what it was; nothing where none was kept. Errors: std::runtime_error naming the file of the evaluation.
std::optional<RunMistakes> read_run_mistakes(const train::RunRecord& run);

}  // namespace mylos::tasks
