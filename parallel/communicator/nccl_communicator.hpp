#pragma once

#include "parallel/communicator/communicator.hpp"

#include <memory>
#include <string>

namespace mylos::parallel {

struct MpiContext;
class MpiRanks;

/// Whether this build knows NCCL.
bool has_nccl();

/// Why device arrays cannot go through NCCL here, on one line that says what to change; empty where they can. Looks for
/// the library, not for devices.
std::string nccl_obstacle();

/// "2.28.9", of the library that was found. Errors: std::runtime_error as nccl_obstacle says.
std::string found_nccl_version();

/// The group of `hosts`, with one device a rank: device arrays go through NCCL, everything else through `hosts`. What
/// it promises is what Communicator promises, except for the order of sums without `ordered_sums`: sums of float32 and
/// float64 then have NCCL's order, which depends on the number of ranks, the array's size and the machine's links; they
/// are the same bits on every rank. bfloat16 is always summed in order, because NCCL would round partial sums. Ordered
/// sums are the exchanges of host arrays (exchanges.hpp) with NCCL's messages and sums on the device: they know nodes,
/// have the same bits, and need memory (device_exchange_bytes).
/// The NCCL communicator is made with the group's first operation on a device array, which comes after Kokkos has
/// begun; until then it costs nothing. `context` and what `hosts` needs outlive it. Errors: std::runtime_error, see
/// nccl_obstacle.
std::unique_ptr<Communicator> make_nccl_communicator(MpiContext& context, const std::shared_ptr<MpiRanks>& hosts,
                                                     bool ordered_sums);

}  // namespace mylos::parallel
