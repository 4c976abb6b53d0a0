#pragma once

#include "parallel/launch/launch.hpp"
#include "train/engine/memory_plan.hpp"
#include "train/engine/trainer.hpp"

#include <string>
#include <vector>

/// What a run says before its first step and after its last.
namespace mylos::train {

struct RunDescription {
  std::string model;           ///< as the user named it, with its sizes: "minilm: 6 layers, hidden 384"
  std::size_t parameters = 0;  ///< elements
  std::string train;           ///< the file with what it holds: "train.json: 100 questions, 120 windows"
  std::string dev;             ///< the same; empty = there is none
  std::string precision;       ///< "float"
  LossScale loss_scale;
  std::string gemm;       ///< who computes matrix products, "onednn"
  std::string execution;  ///< where kernels run, "OpenMP"
  std::size_t ranks = 1, nodes = 1;
  std::size_t threads = 0;                          ///< of a rank
  std::vector<parallel::RankPlacement> placements;  ///< of every rank
  std::size_t steps = 0, batch = 0;
  double epochs = 0.0;  ///< that the steps are
  WorkKind work = {};   ///< what the steps count
  MemoryPlan memory;    ///< expected
  std::size_t free_memory = 0;
  std::string output;
};

/// Lines of a name and what there is to say of it, each ended.
std::string run_banner(const RunDescription& run);

/// What ended a run before its last step: "ended by SIGTERM"; empty where no signal did.
std::string interruption_text(const RunResult& result);

/// The last line of a run: how it ended, total and training time, energy of GPUs, scores of best/.
std::string closing_line(const RunResult& result, double total_seconds);

}  // namespace mylos::train
