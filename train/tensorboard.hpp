#pragma once

#include "train/append_file.hpp"
#include "train/report.hpp"

#include <functional>
#include <span>

/// TensorBoard's event files: records of {length, masked CRC-32C of it, event, masked CRC-32C of that}, the events in
/// Protocol Buffers' wire format (tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.cc).
namespace mylos::train {

struct Scalar {
  std::string tag;
  double value = 0.0;  ///< stored as float
};

/// The name event files of this process get: events.out.tfevents.<seconds since 1970>.<host>.<pid>.
std::string event_file_name();

/// train/loss, train/epoch_loss (mean of the epoch's steps), train/gradient_norm, train/learning_rate, train/loss_scale
/// (where one adapts), eval/<metric>, perf/tokens_per_second and perf/memory (bytes), each step's and evaluation's
/// flushed at once. Errors as AppendFile's.
class TensorBoard final : public Reporter {
 public:
  using Clock = std::function<double()>;  ///< seconds since 1970

  /// Makes event_file_name() in `directory`.
  explicit TensorBoard(const std::filesystem::path& directory);
  TensorBoard(std::filesystem::path file, Clock clock);

  /// Where the run goes on, what other files hold of its later steps is said to be void.
  void start(const RunStart& run) override;
  void step(const StepReport& report) override;
  void evaluation(const EvaluationReport& report) override;
  /// Also the loss of an epoch that was not finished.
  void finish() override;

 private:
  void write(std::size_t step, std::span<const Scalar> scalars);
  void write_epoch_loss();

  AppendFile file_;
  Clock clock_;
  std::size_t steps_per_epoch_ = 0, last_step_ = 0;
  double epoch_losses_ = 0.0;  ///< sum over the epoch's steps so far
  std::size_t epoch_steps_ = 0;
};

}  // namespace mylos::train
