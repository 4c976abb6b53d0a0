#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>

/// metrics.jsonl as a run writes it, read by others.
namespace mylos::train {

/// The number in a line of metrics.jsonl; not a number where it is absent, or null because it was not finite.
double number_of(const nlohmann::json& row, const char* name);

/// Whether a line's JSON is one of metrics.jsonl's: an object whose "step" is a whole number.
bool is_metrics_row(const nlohmann::json& line);

/// What a line is of: its "kind".
inline constexpr const char* step_kind = "step";
inline constexpr const char* evaluation_kind = "evaluation";
inline constexpr const char* checkpoint_kind = "checkpoint";

/// Lines of versions that wrote no kind are told by what else they have: steps say tokens, checkpoints name their file.
bool is_step_row(const nlohmann::json& row);
bool is_checkpoint_row(const nlohmann::json& row);
bool is_evaluation_row(const nlohmann::json& row);

/// Follows the file while it grows: each call reads what was added. The last line may be half-written; it is read again
/// the next time. A start of the run replaces the file by what stays of it.
class MetricsReader {
 public:
  using Take = std::function<void(nlohmann::json&& row)>;

  explicit MetricsReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// Whether another file is there than before. What was given is then void, and the next read() gives everything.
  bool begins_anew();
  /// Gives new rows. Errors: std::runtime_error where it cannot be read.
  void read(const Take& take);

  const std::filesystem::path& file() const { return file_; }
  bool exists() const;
  /// Lines so far that are no such rows, with a last one that is not whole.
  std::size_t unreadable() const { return unreadable_ + (has_rest_ ? 1 : 0); }

 private:
  std::filesystem::path file_;
  std::uintmax_t offset_ = 0, inode_ = 0;
  std::size_t unreadable_ = 0;
  bool has_rest_ = false;
};

}  // namespace mylos::train
