#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// The images that an evaluation took for another label, as evaluations/<step>.json keeps them.
namespace mylos::tasks {

struct ImageMistake {
  std::size_t index = 0;  ///< in the data set
  std::string file;       ///< its name there; empty where images have none
  std::string label, predicted;
  double probability = 0.0;  ///< of the predicted label
  double loss = 0.0;
};

struct ImageMistakes {
  static constexpr std::size_t most = 16;  ///< that are kept

  std::size_t images = 0, wrong = 0;  ///< how many there were
  std::vector<ImageMistake> worst;    ///< those with the largest losses, the largest first
};

std::string mistakes_json(const ImageMistakes& mistakes);
/// Reads what mistakes_json wrote. Errors: std::runtime_error naming file and value.
ImageMistakes read_mistakes(const std::filesystem::path& path);

}  // namespace mylos::tasks
