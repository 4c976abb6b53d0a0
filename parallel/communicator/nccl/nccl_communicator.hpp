#pragma once

#include "parallel/communicator/communicator.hpp"

#include <memory>
#include <string>

namespace mylos::parallel {

struct MpiContext;
class MpiRanks;

/// How a run sums arrays of devices.
struct DeviceSums {
  bool in_order = false;  ///< also float32 and float64
  bool bfloat16 = false;  ///< it sums such arrays
};

/// Returns true if this build supports NCCL.
bool has_nccl();

/// Returns why device arrays cannot go through NCCL here, in one line that says what to change; empty if they can.
/// Checks the library, not the devices.
std::string nccl_obstacle();

/// Returns the version of the library found, such as "2.28.9". Errors: std::runtime_error, see nccl_obstacle.
std::string found_nccl_version();

/// Returns a communicator for the group of `hosts`, with one device per rank. Device arrays go through NCCL, everything
/// else through `hosts`.
///
/// It gives the guarantees of Communicator, except for the order of sums if `sums.in_order` is false: sums of float32
/// and float64 then have NCCL's order, which depends on the number of ranks, the array's size, the arrays that are
/// summed in the same call, and the machine's links; they have the same bits on every rank. bfloat16 is always summed
/// in order, because NCCL would round partial sums. Ordered sums are the exchanges of host arrays (exchanges.hpp) with
/// NCCL's messages and with sums on the device. They take account of nodes, have the same bits, and need memory
/// (device_exchange_bytes).
///
/// Calls with several arrays launch one NCCL group, except for ordered sums and host arrays, which are exchanged one
/// after another.
///
/// The NCCL communicator is created by connect(), or by the group's first operation on a device array, after Kokkos is
/// initialised; until then it costs nothing. Groups of the same ranks in the same order share it. `context` and
/// everything that `hosts` needs must outlive it. Errors: std::runtime_error, see nccl_obstacle.
std::unique_ptr<Communicator> make_nccl_communicator(MpiContext& context, const std::shared_ptr<MpiRanks>& hosts,
                                                     const DeviceSums& sums);

}  // namespace mylos::parallel
