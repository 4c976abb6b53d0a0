#pragma once

#include "train/engine/task.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// A data file of a run, and the checksum of what the run takes from it: not of its bytes, so that a file which is
/// moved, laid out anew or prepared keeps it.
struct DataChecksum {
  std::string option;  ///< that names the file: "train", "dev" or "order"
  std::filesystem::path file;
  std::uint32_t checksum = 0;
};

/// A checksum as run.json has it.
inline std::string checksum_text(std::uint32_t checksum) { return fmt::format("{:08x}", checksum); }

/// How many samples an evaluation predicts, and what they are called: 3, "windows".
struct EvaluatedSamples {
  std::size_t count = 0;
  std::string_view name;
};

/// A task with what commands tell of it, beside what the engine asks.
class Task : public train::Task {
 public:
  /// Of the files that the configuration names.
  virtual std::vector<DataChecksum> data_checksums() const = 0;
  /// What the task chose where nothing was said, as members of run.json's `resolved`.
  virtual nlohmann::ordered_json resolved() const { return nlohmann::ordered_json::object(); }

  /// The model's sizes: "12 layers, hidden 768, 12 heads".
  virtual std::string model_text() const = 0;
  /// What the training data holds: "100 questions, 120 windows, 20,000 tokens, fill 52 %".
  virtual std::string train_text() const = 0;
  /// The same of the evaluation's data; only where there is an evaluation.
  virtual std::string dev_text() const = 0;

  /// Only where there is an evaluation.
  virtual EvaluatedSamples evaluated() const = 0;
  /// The last evaluation's results as eval prints them; empty where nothing was scored.
  virtual std::string results_text() const = 0;
};

}  // namespace mylos::tasks
