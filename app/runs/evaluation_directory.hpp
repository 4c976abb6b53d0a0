#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <vector>

/// The directory that `mylos eval` writes its results into.
namespace mylos::app {

/// Made at once, so that hours of prediction do not end in a directory that cannot be written. Directories that it made
/// are gone again where nothing was written into them.
class EvaluationDirectory {
 public:
  /// In every directory that eval wrote into: its options and the program. What it wrote there it may replace.
  static constexpr const char* record_file = "evaluation.json";

  /// Errors: std::runtime_error of one line where the directory cannot be written, holds a training run, or, without
  /// `overwrite`, holds results of another program.
  EvaluationDirectory(const std::filesystem::path& path, bool overwrite);
  ~EvaluationDirectory();
  EvaluationDirectory(const EvaluationDirectory&) = delete;
  EvaluationDirectory& operator=(const EvaluationDirectory&) = delete;

  /// Writes the record, a JSON object: before the results, so that those of a killed process are still its own.
  void begin(const nlohmann::ordered_json& record) const;

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  ///< innermost first
};

}  // namespace mylos::app
