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

/// Training runs that were recorded from PyTorch with all their steps, one of each family.
namespace mylos::tests {

/// Settings that repeat a recorded run in float, and what was recorded of it.
struct RecordedRun {
  std::string name;  ///< "bert"
  const tasks::TaskKind& kind;
  tasks::RunConfig run;             ///< with the data to evaluate on
  std::filesystem::path recording;  ///< the directory of steps.jsonl
  std::string obstacle = {};        ///< why it cannot be repeated here; empty where it can

  std::unique_ptr<tasks::Task> task() const;
  /// The losses of the first `steps` steps.
  std::vector<double> losses(std::size_t steps) const;
};

/// 300 steps of a small BERT on examples/squad, by scripts/record/examples_run.py.
RecordedRun recorded_examples();
/// 400 steps of a small Llama on chess games, in $MYLOS_REFERENCE.
RecordedRun recorded_chess();

/// 400 steps of a small ResNet on handwritten digits, in $MYLOS_REFERENCE.
RecordedRun recorded_digits();

/// What a comparison of steps allows, relative.
struct StepBounds {
  double loss = 0.0;
  double gradient_norm = 0.0;
};

/// Holds steps to the first lines of the recording: work and learning rates are equal, the rest is within what `bounds`
/// says for a step, counted from 1.
void expect_recorded_steps(const std::vector<train::StepReport>& steps, const std::filesystem::path& recording,
                           const std::function<StepBounds(std::size_t)>& bounds);

}  // namespace mylos::tests
