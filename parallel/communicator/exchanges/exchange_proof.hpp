#pragma once

#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <string>

/// The proof that a group of ranks exchanges device arrays correctly on these devices, before a run uses it.
namespace mylos::parallel {

/// Sums, scatters and gathers arrays of whole numbers, whose sums are exact, in the types that a run exchanges between
/// devices: float32, float64 and bfloat16. `sums_bfloat16`: also sums in bfloat16, for which NCCL would take memory for
/// messages between all ranks of a node. Each call has two arrays. One is longer than NCCL's buffer of 4 MiB. The other
/// has an uneven length, and a rank's part of it lies inside the whole array. Arrays are filled right before the call,
/// results are NaN before it, and inputs are overwritten right after it. An exchange that is out of order with `space`
/// therefore gives wrong elements. Returns what is wrong in an array of this rank, on one line; empty if all are right.
/// Takes about 10 MiB of temporary device memory, and that of ordered sums where they are computed. Collective among
/// devices only, also if an array is wrong. Errors: those of the exchanges.
std::string wrong_exchange(Communicator& ranks, const ExecutionSpace& space, bool sums_bfloat16);

/// Bytes of the array that measured_bandwidth sums.
inline constexpr std::size_t measured_bytes = std::size_t{64} << 20;

/// Sums an array of measured_bytes in float32, once to warm up and then twice. Returns the bytes per second over this
/// rank's links, as nccl-tests counts them (bus bandwidth): 2 (N - 1) / N of the array in the shorter time. Collective
/// among devices only. Errors: those of the exchanges.
double measured_bandwidth(Communicator& ranks, const ExecutionSpace& space);

}  // namespace mylos::parallel
