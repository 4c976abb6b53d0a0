#pragma once

#include "parallel/launch/launch.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/engine/memory/memory_plan.hpp"

#include <span>
#include <string>
#include <vector>

/// Texts printed before the first step of a run and after its last.
namespace mylos::train {

struct RunDescription {
  std::string model;           ///< as the user named it, with its sizes: "minilm: 6 layers, hidden 384"
  std::size_t parameters = 0;  ///< number of parameters,
  std::size_t frozen = 0;      ///< and of those that are not trained
  std::string train;           ///< training file and its contents: "train.json: 100 questions, 120 windows"
  std::string dev;             ///< validation file and its contents; empty = none
  std::string precision;       ///< "float"
  LossScale loss_scale;
  std::string gemm;       ///< provider of matrix products: "onednn"
  std::string execution;  ///< execution space of kernels: "OpenMP"
  std::size_t ranks = 1, nodes = 1;
  std::size_t threads = 0;                          ///< per rank
  std::vector<parallel::RankPlacement> placements;  ///< placement of every rank
  std::size_t steps = 0, batch = 0;
  double epochs = 0.0;  ///< epochs that `steps` amount to
  WorkKind work = {};   ///< unit of work that steps count
  MemoryPlan memory;    ///< expected memory
  std::size_t free_memory = 0;
  std::string load = {};  ///< threads of other programs on the first rank's node, if there are too many, else empty
  std::string output;
};

/// Returns "22,566,146 parameters, 22,565,376 of them frozen".
std::string parameters_text(std::size_t parameters, std::size_t frozen);

/// Returns newline-terminated lines, each with a name and its text.
std::string run_banner(const RunDescription& run);

/// Returns the reason why a run ended before its last step: "ended by SIGTERM". Empty if no signal ended it.
std::string interruption_text(const RunResult& result);

/// Returns the last line of a run: how it ended, total and training time, GPU energy, and scores of best/.
std::string closing_line(const RunResult& result, double total_seconds);

/// Returns newline-terminated lines, each with a name and its text: the batch job, if there is one, and for each rank
/// its node, its GPU and the processors that it may run on. Adjacent ranks with the same text share a line. If the
/// ranks are in different jobs, each rank's line names its job. Returns an empty string for a single rank without job
/// and GPU.
std::string rank_lines(std::span<const parallel::RankPlacement> placements);

}  // namespace mylos::train
