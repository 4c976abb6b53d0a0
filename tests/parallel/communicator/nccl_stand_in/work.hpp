#pragma once

#include <nccl.h>
#include "tests/parallel/communicator/nccl_stand_in/peer_sockets.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// The operations of the stand-in for NCCL, as streams execute them. To expose missing waits, each operation takes some
/// time, and its output memory holds NaN until it has ended.
namespace mylos::stand_in {

using Clock = std::chrono::steady_clock;

inline std::size_t bytes_of(ncclDataType_t type) { return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : 8; }

enum class Kind : std::uint64_t { messages = 1, all_reduce, reduce_scatter, all_gather, broadcast };

/// The exchange of one NCCL call, or of all messages of a group. It includes messages from this rank to itself.
struct Work {
  Kind kind = Kind::messages;
  std::vector<Message> sent, received;
  bool sums = false;  ///< adds all received data into `sum`
  Message sum;
  ncclDataType_t type = ncclUint8;
};

/// A requested operation: a single call, or the calls of a group.
struct Request {
  std::vector<Work> works;
  bool hangs = false;
  bool fails_later = false;   ///< hangs, and shows an error of the communicator after a time
  bool fails_device = false;  ///< fails the device when its kernel starts
  bool sums_wrongly = false;  ///< the last byte of each sum is wrong
};

/// State owned jointly by a communicator and its operations.
struct State {
  State(const std::string& name, int its_rank, int its_ranks)
      : rank(its_rank), ranks(its_ranks), peers(name, its_rank, its_ranks) {
    cudaGetDevice(&device);
  }

  int rank, ranks, device = 0;
  PeerSockets peers;
  void* memory = nullptr;  ///< of the device
  bool connected = false;
  std::unique_ptr<Request> asked;  ///< requested, but not launched
  cudaStream_t stream = nullptr;
  Clock::time_point asked_at;
  std::atomic<int> launched{0};  ///< number of operations that have not ended
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> error{ncclSuccess};
};

/// Stores `why` for ncclGetLastError, and returns `result`.
ncclResult_t refuse(ncclResult_t result, const char* why);
const char* last_words();

/// Puts the communicator's requested operation on its stream.
void launch(const std::shared_ptr<State>& state);

}  // namespace mylos::stand_in
