#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>

/// Reads metrics.jsonl while a run writes it.
namespace mylos::train {

/// Returns the number called `name` in a line of metrics.jsonl; NaN if it is absent, or null because it was not finite.
double number_of(const nlohmann::json& row, const char* name);

/// Returns whether a line is a row of metrics.jsonl: a JSON object whose "step" is a non-negative integer.
bool is_metrics_row(const nlohmann::json& line);

/// Values of a row's "kind".
inline constexpr const char* step_kind = "step";
inline constexpr const char* evaluation_kind = "evaluation";
inline constexpr const char* checkpoint_kind = "checkpoint";

/// Rows of versions that wrote no kind are recognised by their keys: steps have "tokens", checkpoints their file name.
bool is_step_row(const nlohmann::json& row);
bool is_checkpoint_row(const nlohmann::json& row);
bool is_evaluation_row(const nlohmann::json& row);

/// Follows the file as it grows: each call reads the added lines. The last line may be incomplete and is then read
/// again by the next call. A resumed run replaces the file by the part that it keeps.
class MetricsReader {
 public:
  using Take = std::function<void(nlohmann::json&& row)>;

  explicit MetricsReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// Returns whether the file was replaced by another. The rows passed so far are then invalid, and the next read()
  /// passes all rows again.
  bool begins_anew();
  /// Passes new rows to `take`. Errors: std::runtime_error if the file cannot be read.
  void read(const Take& take);

  const std::filesystem::path& file() const { return file_; }
  bool exists() const;
  /// Returns the number of lines so far that are not rows, including an incomplete last line.
  std::size_t unreadable() const { return unreadable_ + (has_rest_ ? 1 : 0); }

 private:
  std::filesystem::path file_;
  std::uintmax_t offset_ = 0, inode_ = 0;
  std::size_t unreadable_ = 0;
  bool has_rest_ = false;
};

}  // namespace mylos::train
