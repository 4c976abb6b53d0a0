#pragma once

#include "core/parameter_store.hpp"
#include "train/engine/rank_layout.hpp"
#include "train/engine/step_assignment.hpp"
#include "train/engine/train_config.hpp"
#include "train/engine/workload.hpp"

#include <algorithm>

/// What a run will take on each rank where kernels compute, counted before it begins: memory of the process, or that of
/// its device.
namespace mylos::train {

struct MemoryPlan {
  std::size_t program = 0;    ///< resident before the run takes anything: program, libraries, questions, windows; of a
                              ///< device what is taken already, by whomever
  std::size_t before = 0;     ///< the most that was resident until then
  std::size_t values = 0;     ///< bytes of parameters in the compute type, and float master weights beside 16-bit ones
  std::size_t gradients = 0;  ///< and what a step's samples observed for the state tensors
  std::size_t exchange = 0;   ///< gradients in the type they are exchanged in
  std::size_t optimizer = 0;  ///< slots
  std::size_t activations = 0;  ///< the arena
  std::size_t workspace = 0;    ///< of matrix products: copies of operands and, on a host, generated code and heaps
  std::size_t scratch = 0;      ///< of teams
  std::size_t output = 0;       ///< answers of an evaluation, a piece of what is written, samples that are read ahead
  std::size_t loading = 0;      ///< the largest piece of a tensor as float, before the arena is used
  MicroBatchLimit limit;        ///< what is computed at once
  std::size_t asked = 0;        ///< samples at once of the run that was asked for, before they were halved to fit
  BatchShape largest;           ///< of the micro-batches of all ranks
  RankLayout layout;
  parallel::ModeSettings mode;

  /// What training takes.
  std::size_t total() const {
    return values + gradients + exchange + optimizer + std::max(activations + workspace + scratch, loading);
  }
  /// What is resident at the most.
  std::size_t peak() const { return std::max(before, program + total() + output); }
};

/// The plan for `steps` steps, but for what is resident already (`note_resident`): the same on every rank that gives
/// the same `available` bytes. Where neither samples nor tokens of a micro-batch are given, the largest that fits is
/// taken, by halving; where no mode is given, replicated, or sharded where there are several ranks and only that fits.
/// A recorded layout of as many ranks goes before both, where it fits and the settings ask for no other.
/// Errors: std::runtime_error with the parts if it does not fit, and for what the model, the samples or the ranks
/// cannot honour: a recomputation, fewer tokens than one sample has, what lay_out refuses.
MemoryPlan plan_memory(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankCounts& ranks = {});

/// `plan` with micro-batches of `shape` and another recomputation: only what passes take is counted anew.
MemoryPlan with_micro_batch(MemoryPlan plan, const BatchShape& shape, const Workload& workload, nn::Recompute recompute,
                            const RankCounts& ranks);

/// The products of the run's largest passes.
std::vector<GemmProduct> largest_products(const Workload& workload, const MemoryPlan& plan);

/// Notes what is resident now as what the run comes on top of, and what the run's products take beside it: on a device
/// what their providers say, on a host what they were seen to take, each being computed once.
void note_products(MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm, const Workload& workload);

}  // namespace mylos::train
