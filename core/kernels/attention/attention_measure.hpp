#pragma once

#include "core/base/notice.hpp"
#include "core/kernels/attention/attention.hpp"

#include <functional>
#include <map>
#include <span>
#include <vector>

/// Timings of attention kernels, and the choice by them.
namespace mylos {

/// The attention of one layer over a micro-batch of training.
struct TimedAttention {
  AttentionShape shape = {};  ///< its kernel does not matter
  Precision precision = Precision::float32;
  std::vector<std::size_t> lengths = {};  ///< rows of each sequence
};

/// Returns the seconds of one forward and one backward pass with `kernel`.
using AttentionTimer = std::function<double(AttentionKernel kernel)>;

/// Seconds by kernel.
using AttentionSeconds = std::map<AttentionKernel, double>;

/// Returns the median times of `kernels`. They are timed in turns, after one call each in which a library may set up
/// what it keeps per shape. A kernel for which `timer` throws is left out; `notice` gets one line with the reason.
AttentionSeconds time_attention(std::span<const AttentionKernel> kernels, const AttentionTimer& timer,
                                const Notice& notice);

/// The same for passes over `attention`, with arrays of constant values in temporary memory: no more than a layer's
/// activations and their gradients take in training. If there is no memory for them, returns no times, and `notice`
/// gets a line. Errors: std::invalid_argument if there are no sequences.
AttentionSeconds measure_attention(const ExecutionSpace& space, std::span<const AttentionKernel> kernels,
                                   const TimedAttention& attention, const Notice& notice);

/// Returns the fastest of `kernels`, of which at least one is given. The first stays unless another one needs at least
/// 3 % less time. Kernels without a time are not chosen if another one has a time.
AttentionKernel fastest_attention(std::span<const AttentionKernel> kernels, const AttentionSeconds& seconds);

}  // namespace mylos
