#pragma once

#include "core/base/value_bytes.hpp"
#include "core/kernels/attention/attention_candidates.hpp"
#include "train/engine/task.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// A data file of a run, and the checksum of the data that the run takes from it. The checksum does not cover the
/// file's bytes, so that it stays the same when the file is moved, reformatted or prepared.
struct DataChecksum {
  std::string option;  ///< option that names the file: "train", "dev" or "order"
  std::filesystem::path file;
  std::uint32_t checksum = 0;
};

/// Returns a checksum in the format of run.json.
inline std::string checksum_text(std::uint32_t checksum) { return fmt::format("{:08x}", checksum); }

/// The number of samples that an evaluation predicts, and their name: 3, "windows".
struct EvaluatedSamples {
  std::size_t count = 0;
  std::string_view name;
};

/// A task with the descriptions that commands need, beyond the engine's interface.
class Task : public train::Task {
 public:
  /// Reads the data files of the run. One rank does this and sends the data to the others, so that a run reads and
  /// tokenizes its files once. Tasks whose constructor opens the data, as that of a task on images does, read none
  /// here. Errors: those of TaskKind::make.
  virtual void read_data() {}
  /// Writes the data for receive_data. Large arrays may move to shared memory (core/base/shared_array.hpp).
  virtual void write_data(ByteWriter&) const {}
  /// Takes the data that another rank's task of the same configuration has read.
  virtual void receive_data(ByteReader&) {}

  /// Returns the checksums of the files in the configuration.
  virtual std::vector<DataChecksum> data_checksums() const = 0;
  /// Returns the defaults that the task chose, as members of `resolved` in run.json.
  virtual nlohmann::ordered_json resolved() const { return nlohmann::ordered_json::object(); }

  /// Returns the attention of the model, with the kernel in use, and its requirements; nullopt if it has none.
  virtual std::optional<AttentionUse> attention() const { return {}; }
  /// Makes the model again, with this attention kernel. Call it before model() is used. The model must have attention.
  virtual void set_attention(AttentionKernel) {}

  /// Returns the model's sizes: "12 layers, hidden 768, 12 heads".
  virtual std::string model_text() const = 0;
  /// Returns the contents of the training data: "100 questions, 120 windows, 20,000 tokens, packing efficiency 52 %".
  virtual std::string train_text() const = 0;
  /// Returns the same for the evaluation data. Requires an evaluation.
  virtual std::string dev_text() const = 0;

  /// Requires an evaluation.
  virtual EvaluatedSamples evaluated() const = 0;
  /// Returns the last evaluation's results as printed by eval; empty if nothing was scored.
  virtual std::string results_text() const = 0;
  /// Returns lines about the data for the end of the log, such as the number of damaged pictures.
  virtual std::vector<std::string> closing_lines() const { return {}; }
};

}  // namespace mylos::tasks
