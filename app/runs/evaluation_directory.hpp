#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <vector>

/// The output directory of `mylos eval`.
namespace mylos::app {

/// Creates the directory on construction, so that a directory that cannot be written is reported before hours of
/// prediction. Directories that it created are removed again if nothing was written to them.
class EvaluationDirectory {
 public:
  /// The file with eval's options and the program, in every directory that eval wrote to. Its presence allows eval to
  /// replace its own results.
  static constexpr const char* record_file = "evaluation.json";

  /// Errors: std::runtime_error with one line if the directory cannot be written, holds a training run, or, without
  /// `overwrite`, holds results of another program.
  EvaluationDirectory(const std::filesystem::path& path, bool overwrite);
  ~EvaluationDirectory();
  EvaluationDirectory(const EvaluationDirectory&) = delete;
  EvaluationDirectory& operator=(const EvaluationDirectory&) = delete;

  /// Writes the record, a JSON object. Call it before writing results, so that results of a killed process are
  /// recognized as eval's own.
  void begin(const nlohmann::ordered_json& record) const;

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  ///< innermost first
};

}  // namespace mylos::app
