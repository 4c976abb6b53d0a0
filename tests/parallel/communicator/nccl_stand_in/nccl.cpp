#include <nccl.h>

#include "tests/parallel/communicator/nccl_stand_in/work.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// Two environment variables change its behaviour. NCCL_STAND_IN_VERSION is the version that it reports.
/// NCCL_STAND_IN_FAULT injects faults, separated by commas. The last six below take the index of an operation of the
/// process, as in "call:3". A group is one operation.
///   id       creating an id fails
///   init     connecting fails immediately
///   connect  connecting never ends
///   abort    aborting never returns
///   destroy  destroying never returns
///   wrong    sums have one wrong element
///   finalize the first communicator takes some seconds to finalize, and must not be aborted meanwhile
///   call     the call fails
///   send     a message of the operation's group is rejected
///   second   the second collective of the operation's group is rejected
///   async    the operation hangs, and the communicator reports an error when later operations have been launched
///   hang     the operation hangs
///   device   the operation hangs, and every query of the device fails
namespace {

using namespace mylos::stand_in;

/// Time between a call and its launch; meanwhile the communicator rejects other calls.
constexpr std::chrono::microseconds launch_time{200};
constexpr std::chrono::milliseconds finalize_time{2500};
/// Device memory of a communicator.
constexpr std::size_t communicator_bytes = std::size_t{1} << 20;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Ends the program on errors that NCCL might not survive and that no result would show.
[[noreturn]] void end_test(const char* why) {
  std::fprintf(stderr, "stand-in for NCCL: %s\n", why);
  std::_Exit(70);
}

/// Unfinished communicators, which are checked at the end of the program.
struct Living {
  ~Living() {
    if (count != 0) end_test("a communicator was never ended");
  }
  std::atomic<int> count{0};
};
Living living;

bool fault(std::string_view kind) {
  const std::string faults = "," + std::string(variable("NCCL_STAND_IN_FAULT")) + ",";
  return faults.find("," + std::string(kind) + ",") != std::string::npos;
}

std::atomic<int> operations{0};  ///< number of requested operations

bool fault_in_operation(int number, std::string_view kind) {
  return fault(std::string(kind) + ":" + std::to_string(number));
}
bool operation_fault(std::string_view kind) { return fault_in_operation(operations, kind); }

}  // namespace

struct ncclComm {
  std::shared_ptr<State> state;  ///< null after its end
  bool finalizing = false;
  Clock::time_point may_end_at = {};  ///< earliest end of finalizing
};

namespace {

struct Group {
  bool open = false;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Work> collectives;
  Work messages;
  ncclResult_t error = ncclSuccess;  ///< the first; such a group launches nothing
};
thread_local Group group;

/// Returns the reason why `communicator` cannot take a call, or ncclSuccess.
ncclResult_t check(ncclComm_t communicator, cudaStream_t stream) {
  if (communicator == nullptr || !communicator->state) return refuse(ncclInvalidArgument, "no communicator");
  const State& state = *communicator->state;
  if (state.error != ncclSuccess) return state.error;
  if (!state.connected || state.asked || communicator->finalizing) {
    return refuse(ncclInvalidUsage, "a call before the one before is launched");
  }
  int device = -1;
  if (stream == nullptr || cudaStreamGetDevice(stream, &device) != cudaSuccess || device != state.device) {
    return refuse(ncclInvalidArgument, "the stream is another device's");
  }
  return ncclSuccess;
}

ncclResult_t ask(ncclComm_t communicator, cudaStream_t stream, std::vector<Work> works) {
  if (const ncclResult_t wrong = check(communicator, stream); wrong != ncclSuccess) return wrong;
  ++operations;
  if (operation_fault("call")) return refuse(ncclInternalError, "injected");
  State& state = *communicator->state;
  Request request{std::move(works), operation_fault("hang"), operation_fault("async"), operation_fault("device"),
                  fault("wrong")};
  state.asked = std::make_unique<Request>(std::move(request));
  state.stream = stream;
  state.asked_at = Clock::now();
  return ncclInProgress;
}

/// Makes `communicator` and `stream` those of the open group, which cannot have others.
ncclResult_t join_group(ncclComm_t communicator, cudaStream_t stream) {
  if (group.communicator != nullptr && (group.communicator != communicator || group.stream != stream)) {
    return refuse(ncclInvalidUsage, "a group over two communicators or streams");
  }
  group.communicator = communicator;
  group.stream = stream;
  return ncclSuccess;
}

/// Returns `error`, which also fails the open group, if there is one.
ncclResult_t in_group(ncclResult_t error) {
  if (group.open && group.error == ncclSuccess) group.error = error;
  return error;
}

ncclResult_t ask_collective(ncclComm_t communicator, cudaStream_t stream, Work work) {
  std::vector<Work> works;
  works.push_back(std::move(work));
  if (!group.open) return ask(communicator, stream, std::move(works));
  if (const ncclResult_t wrong = join_group(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  if (group.collectives.size() == 1 && fault_in_operation(operations + 1, "second")) {
    return in_group(refuse(ncclInternalError, "injected"));
  }
  group.collectives.push_back(std::move(works.front()));
  return ncclSuccess;
}

ncclResult_t ask_message(bool sends, const void* data, std::size_t bytes, int peer, ncclComm_t communicator,
                         cudaStream_t stream) {
  if (!group.open) return refuse(ncclInvalidUsage, "a message outside of a group would wait for its peer");
  if (const ncclResult_t wrong = check(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  if (data == nullptr || peer < 0 || peer >= communicator->state->ranks || peer == communicator->state->rank) {
    return in_group(refuse(ncclInvalidArgument, "a message without data or to no other rank"));
  }
  if (sends && fault_in_operation(operations + 1, "send")) return in_group(refuse(ncclInternalError, "injected"));
  if (const ncclResult_t wrong = join_group(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(data));
  (sends ? group.messages.sent : group.messages.received).push_back({peer, memory, bytes});
  return ncclSuccess;
}

std::byte* memory_of(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

/// True if [a, a + a_bytes) and [b, b + b_bytes) overlap.
bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

int ranks_of(ncclComm_t communicator) { return communicator->state->ranks; }
std::size_t rank_of(ncclComm_t communicator) { return static_cast<std::size_t>(communicator->state->rank); }

/// Frees the communicator's device memory, which waits for all work on the device, of other communicators too. The
/// fault `never_returns` waits forever.
ncclResult_t end(ncclComm_t communicator, const char* never_returns) {
  --living.count;
  const std::shared_ptr<State> state = std::exchange(communicator->state, nullptr);  // the handle shows later calls
  while (fault(never_returns)) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (state->memory != nullptr) cudaFree(state->memory);
  return ncclSuccess;
}

/// Every rank sends `part(rank)` to each rank, and receives as much from each.
template <class Part>
Work work_for_sum(Kind kind, ncclComm_t communicator, ncclDataType_t type, std::size_t bytes, void* to,
                  const Part& part) {
  Work work;
  work.kind = kind;
  work.sums = true;
  work.type = type;
  work.sum = {0, memory_of(to), bytes};
  for (int rank = 0; rank < ranks_of(communicator); ++rank) {
    work.sent.push_back({rank, part(static_cast<std::size_t>(rank)), bytes});
    work.received.push_back({rank, nullptr, bytes});
  }
  return work;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const std::string_view given = variable("NCCL_STAND_IN_VERSION");
  *version = given.empty() ? NCCL_VERSION_CODE : std::stoi(std::string(given));
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (fault("id")) return refuse(ncclSystemError, "injected");
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "nccl-stand-in-%d-%08x%08x", ::getpid(), random(), random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return refuse(ncclInvalidUsage, "a communicator that blocks");
  if (fault("init")) return refuse(ncclSystemError, "injected");
  ++living.count;
  *communicator = new ncclComm{std::make_shared<State>(id.internal, rank, ranks)};
  State& state = *(*communicator)->state;
  if (cudaMalloc(&state.memory, communicator_bytes) != cudaSuccess) {
    state.error = refuse(ncclUnhandledCudaError, "out of memory");
  }
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  if (communicator->state->asked) return refuse(ncclInvalidUsage, "an end before a call is launched");
  communicator->finalizing = true;
  static std::atomic<bool> is_first{true};
  if (fault("finalize") && is_first.exchange(false)) communicator->may_end_at = Clock::now() + finalize_time;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (!communicator->finalizing || communicator->state->launched != 0) end_test("destroyed before its work has ended");
  return end(communicator, "destroy");
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  if (!communicator->state) return refuse(ncclInvalidArgument, "no communicator");
  if (group.open) end_test("an abort within a group, which would wait for the group's end");
  if (communicator->finalizing && fault("finalize")) end_test("an abort while the communicator was finalized");
  communicator->state->aborted = true;
  return end(communicator, "abort");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state_of) {
  if (communicator == nullptr || !communicator->state) return refuse(ncclInvalidArgument, "no communicator");
  State& state = *communicator->state;
  *state_of = ncclInProgress;
  if (!state.connected) state.connected = !fault("connect") && state.peers.connect();
  if (state.asked && Clock::now() - state.asked_at >= launch_time) launch(communicator->state);
  const bool ended = !communicator->finalizing || (state.launched == 0 && Clock::now() >= communicator->may_end_at);
  if (state.connected && !state.asked && ended) *state_of = ncclSuccess;
  if (state.error != ncclSuccess) *state_of = state.error;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited";
    case ncclInProgress:
      return "in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) { return last_words(); }

ncclResult_t ncclGroupStart() {
  if (std::exchange(group.open, true)) return refuse(ncclInvalidUsage, "a group within a group");
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (!group.open) return refuse(ncclInvalidUsage, "the end of no group");
  Group ended = std::exchange(group, {});
  if (ended.error != ncclSuccess) return ended.error;
  if (ended.communicator == nullptr) return ncclSuccess;
  if (ended.collectives.empty()) {
    ended.collectives.push_back(std::move(ended.messages));
  } else if (!ended.messages.sent.empty() || !ended.messages.received.empty()) {
    return refuse(ncclInvalidUsage, "messages and collectives in one group");
  }
  return ask(ended.communicator, ended.stream, std::move(ended.collectives));
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return ask_message(true, data, count * bytes_of(type), peer, communicator, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return ask_message(false, data, count * bytes_of(type), peer, communicator, stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (const ncclResult_t wrong = check(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  std::byte* const mine = memory_of(from);
  return ask_collective(communicator, stream,
                        work_for_sum(Kind::all_reduce, communicator, type, count * bytes_of(type), to,
                                     [mine](std::size_t) { return mine; }));
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t communicator, cudaStream_t stream) {
  if (const ncclResult_t wrong = check(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  const std::size_t bytes = count * bytes_of(type);
  std::byte* const all = memory_of(from);
  const auto part = [all, bytes](std::size_t rank) { return all + rank * bytes; };
  if (overlap(all, bytes * static_cast<std::size_t>(ranks_of(communicator)), memory_of(to), bytes) &&
      to != part(rank_of(communicator))) {
    return in_group(refuse(ncclInvalidArgument, "the sum overlaps another rank's part"));
  }
  return ask_collective(communicator, stream, work_for_sum(Kind::reduce_scatter, communicator, type, bytes, to, part));
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  if (const ncclResult_t wrong = check(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  const std::size_t bytes = count * bytes_of(type);
  std::byte* const mine = memory_of(from);
  if (overlap(memory_of(to), bytes * static_cast<std::size_t>(ranks_of(communicator)), mine, bytes) &&
      mine != memory_of(to) + rank_of(communicator) * bytes) {
    return in_group(refuse(ncclInvalidArgument, "a part overlaps another rank's place"));
  }
  Work work;
  work.kind = Kind::all_gather;
  for (int rank = 0; rank < ranks_of(communicator); ++rank) {
    work.sent.push_back({rank, mine, bytes});
    work.received.push_back({rank, memory_of(to) + static_cast<std::size_t>(rank) * bytes, bytes});
  }
  return ask_collective(communicator, stream, std::move(work));
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (const ncclResult_t wrong = check(communicator, stream); wrong != ncclSuccess) return in_group(wrong);
  const std::size_t bytes = count * bytes_of(type);
  Work work;
  work.kind = Kind::broadcast;
  if (communicator->state->rank == root) {
    for (int rank = 0; rank < ranks_of(communicator); ++rank) work.sent.push_back({rank, memory_of(from), bytes});
  }
  work.received.push_back({root, memory_of(to), bytes});
  return ask_collective(communicator, stream, std::move(work));
}

}  // extern "C"
