#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// The images that an evaluation classified wrongly, as stored in evaluations/<step>.json.
namespace mylos::tasks {

struct ImageMistake {
  std::size_t index = 0;  ///< index in the data set
  std::string file;       ///< name in the data set; empty if images have none
  std::string label, predicted;
  double probability = 0.0;  ///< probability of the predicted label
  double loss = 0.0;
};

struct ImageMistakes {
  static constexpr std::size_t most = 16;  ///< most mistakes that are kept

  std::size_t images = 0, wrong = 0;  ///< total counts
  std::vector<ImageMistake> worst;    ///< mistakes with the largest losses, in descending order
};

std::string mistakes_json(const ImageMistakes& mistakes);
/// Reads the output of mistakes_json. Errors: std::runtime_error naming the file and the value.
ImageMistakes read_mistakes(const std::filesystem::path& path);

}  // namespace mylos::tasks
