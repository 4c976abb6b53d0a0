#pragma once

#include "tasks/interface/run_config.hpp"
#include "tasks/interface/task_kind.hpp"
#include "train/engine/report.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Training runs recorded from PyTorch with all their steps, one per model family.
namespace mylos::tests {

/// The settings that repeat a recorded run in float, and the recording.
struct RecordedRun {
  std::string name;  ///< "bert"
  const tasks::TaskKind& kind;
  tasks::RunConfig run;             ///< with evaluation data
  std::filesystem::path recording;  ///< contains steps.jsonl
  std::string obstacle = {};        ///< reason why it cannot be repeated here; empty if it can

  std::unique_ptr<tasks::Task> task() const;
  /// Returns the recorded losses of the first `steps` steps.
  std::vector<double> losses(std::size_t steps) const;
};

/// Returns a run of 300 steps of a small BERT on examples/squad, recorded by lab/record/examples_run.py.
RecordedRun recorded_examples();
/// Returns a run of 400 steps of a small Llama on chess games, in $MYLOS_REFERENCE.
RecordedRun recorded_chess();
/// Returns a run of 100 steps of adapters of all linear layers of that Llama, in $MYLOS_REFERENCE.
RecordedRun recorded_chess_adapters();
/// Returns a run of 400 steps of a small ResNet on handwritten digits, in $MYLOS_REFERENCE.
RecordedRun recorded_digits();

/// The relative tolerances of a comparison of steps.
struct StepBounds {
  double loss = 0.0;
  double gradient_norm = 0.0;
};

/// Compares steps with the first lines of the recording. Work and learning rates must be equal; the rest must be within
/// `bounds`, a function of the step counted from 1.
void expect_recorded_steps(const std::vector<train::StepReport>& steps, const std::filesystem::path& recording,
                           const std::function<StepBounds(std::size_t)>& bounds);

}  // namespace mylos::tests
