#pragma once

#include "train/engine/step_parts.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// What a run tells about itself while it goes on. Progress lines, files and charts are reporters.
namespace mylos::train {

struct RunStart {
  std::size_t steps = 0;       ///< of the whole run
  std::size_t first_step = 0;  ///< where this start of it begins
  std::size_t steps_per_epoch = 0;
  bool evaluation_due = false;  ///< it begins with the evaluation after `first_step` steps
  WorkKind work = {};           ///< what its steps count
};

struct StepReport {
  std::size_t step = 0;  ///< from 1
  double epoch = 0.0;    ///< passes over the samples so far, 1.5 is the middle of the second
  double loss = 0.0;
  double gradient_norm = 0.0;  ///< before clipping
  double learning_rate = 0.0;
  std::size_t sequences = 0;  ///< samples, which RunStart::work names
  std::size_t tokens = 0;     ///< rows of all samples, without padding; RunStart::work counts them
  double seconds = 0.0;
  double flops = 0.0;                     ///< operations of the step on all ranks, by formula
  std::size_t memory = 0;                 ///< peak resident bytes of this process
  std::uint64_t sent = 0;                 ///< bytes that this rank sent to others in the step
  std::optional<double> loss_scale = {};  ///< that the step had, where the run adapts one
  bool skipped = false;                   ///< nothing was updated: the gradient was not finite with that loss scale
  StepParts parts = {};

  double tokens_per_second() const { return per_second(static_cast<double>(tokens), seconds); }
};

struct EvaluationReport {
  std::size_t step = 0;  ///< after this many steps
  double seconds = 0.0;
  Metrics metrics;
  bool best = false;
};

struct CheckpointReport {
  std::size_t step = 0;  ///< after this many steps
  std::filesystem::path file;
  std::size_t bytes = 0;     ///< of its arrays
  double seconds = 0.0;      ///< until it was on the disk
  std::string error = {};    ///< why it was not written, where the run goes on without it
  std::string warning = {};  ///< what failed after it was complete; empty where nothing did
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void start(const RunStart&) {}
  virtual void step(const StepReport&) {}
  virtual void evaluation(const EvaluationReport&) {}
  virtual void checkpoint(const CheckpointReport&) {}
  /// The run's last call, also where it ends early.
  virtual void finish() {}
};

}  // namespace mylos::train
