#pragma once

#include "core/kernels/attention/attention.hpp"

#include <vector>

/// The attention kernels that a run can use if none is asked for.
namespace mylos {

/// The requirements of a run on attention.
struct AttentionUse {
  AttentionShape shape = {};  ///< its kernel does not matter
  Precision precision = Precision::float32;
  double dropout = 0.0;        ///< probability in training; 0 if the run does not train
  bool deterministic = false;  ///< the run needs the same bits each time
};

/// Returns the kernels that can be used on `device`: those that this build and machine can run, and that meet the
/// requirements. A run proves them on its device before it uses them (attention_proof.hpp). The portable kernel is
/// always the last; before it come those of GPUs, first the one that gives the same bits in each run.
std::vector<AttentionKernel> attention_candidates(const AttentionUse& use, const GpuArchitecture& device);
/// The same in a build for that device, with every library.
std::vector<AttentionKernel> planned_attention_candidates(const AttentionUse& use, const GpuArchitecture& device);

/// Returns `candidates` without the portable kernel if there are others: on a GPU it is 60 to 100 times as slow, so
/// that it need not be timed.
std::vector<AttentionKernel> fast_attention(std::vector<AttentionKernel> candidates);

}  // namespace mylos
