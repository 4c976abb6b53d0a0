#include "tests/parallel/communicator/nccl_stand_in/work.hpp"

#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace mylos::stand_in {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds operation_time{500};
/// Delay between an abort and the end of the aborted operation.
constexpr milliseconds abort_time{100};
/// Delay before the error of an operation that fails later.
constexpr milliseconds error_time{200};
constexpr int poison = 0xFF;

std::mutex words_mutex;
std::string words;

struct Launched {
  std::shared_ptr<State> state;
  std::unique_ptr<Request> request;
};

/// The parts of arrays that are sent, or received.
using Parts = std::vector<std::vector<std::byte>>;

template <class T>
void add_all(const Parts& parts, std::byte* to, std::size_t bytes) {
  for (std::size_t begin = 0; begin < bytes; begin += sizeof(T)) {
    T sum{};
    // From the last rank down, which differs from our own order.
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      T value;
      std::memcpy(&value, part->data() + begin, sizeof value);
      sum = sum + value;
    }
    std::memcpy(to + begin, &sum, sizeof sum);
  }
}

void write_results(const Work& work, const Parts& received) {
  if (!work.sums) {
    for (std::size_t i = 0; i < received.size(); ++i) {
      std::memcpy(work.received[i].data, received[i].data(), received[i].size());
    }
  } else if (work.type == ncclFloat32) {
    add_all<float>(received, work.sum.data, work.sum.bytes);
  } else if (work.type == ncclFloat64) {
    add_all<double>(received, work.sum.data, work.sum.bytes);
  } else {
    add_all<std::uint64_t>(received, work.sum.data, work.sum.bytes);
  }
}

/// Copies the data to send and poisons the memory to be written. Works of a group follow one another, which exposes
/// arrays that overlap.
Parts take_sent(const Work& work) {
  Parts copies;
  for (const Message& message : work.sent) copies.emplace_back(message.data, message.data + message.bytes);
  if (work.sums) std::memset(work.sum.data, poison, work.sum.bytes);
  for (const Message& message : work.received) {
    if (message.data != nullptr) std::memset(message.data, poison, message.bytes);
  }
  return copies;
}

/// Returns a number that differs between works of different kinds, and between positions in groups of different sizes:
/// all ranks must form the same groups.
std::uint64_t kind_of(const Request& request, std::size_t index) {
  const std::uint64_t kind = static_cast<std::uint64_t>(request.works[index].kind);
  return kind + 16 * (static_cast<std::uint64_t>(request.works.size()) + (static_cast<std::uint64_t>(index) << 24));
}

PeerSockets::Outcome exchange(State& state, const Request& request, std::size_t index, Parts& copies, Parts& received) {
  const Work& work = request.works[index];
  std::vector<Message> to_others, from_others;
  for (const Message& message : work.received) received.emplace_back(message.bytes);
  for (std::size_t i = 0; i < work.sent.size(); ++i) {
    if (work.sent[i].peer != state.rank) to_others.push_back({work.sent[i].peer, copies[i].data(), copies[i].size()});
  }
  for (std::size_t i = 0; i < work.received.size(); ++i) {
    if (work.received[i].peer != state.rank) {
      from_others.push_back({work.received[i].peer, received[i].data(), received[i].size()});
      continue;
    }
    for (std::size_t j = 0; j < work.sent.size(); ++j) {
      if (work.sent[j].peer == state.rank) received[i] = copies[j];
    }
  }
  return state.peers.exchange(kind_of(request, index), to_others, from_others, state.aborted);
}

/// After an abort, or on a failed device, an operation accesses no memory, because its arrays may have been freed.
void run(State& state, const Request& request) {
  if (request.fails_device) stand_in_fail_device();
  const bool runs = !state.aborted && stand_in_device_failed() == 0;
  std::vector<Parts> copies, received(request.works.size());
  for (const Work& work : request.works) copies.push_back(runs ? take_sent(work) : Parts());
  std::this_thread::sleep_for(operation_time);
  if (request.fails_later) {
    std::this_thread::sleep_for(error_time);
    refuse(ncclRemoteError, "injected");
    state.error = ncclRemoteError;
  }
  while ((request.hangs || request.fails_later || !runs) && !state.aborted)
    std::this_thread::sleep_for(milliseconds(1));
  if (state.aborted) {
    std::this_thread::sleep_for(abort_time);
    return;
  }
  for (std::size_t i = 0; i < request.works.size(); ++i) {
    const auto outcome = exchange(state, request, i, copies[i], received[i]);
    if (outcome == PeerSockets::Outcome::done) continue;
    if (outcome == PeerSockets::Outcome::mismatch) {
      refuse(ncclInternalError, "a peer is in another operation, or in one of another size");
      state.error = ncclInternalError;
      while (!state.aborted) std::this_thread::sleep_for(milliseconds(1));
    }
    std::this_thread::sleep_for(abort_time);
    return;
  }
  for (std::size_t i = 0; i < request.works.size(); ++i) {
    const Work& work = request.works[i];
    write_results(work, received[i]);
    if (request.sums_wrongly && work.sums) work.sum.data[work.sum.bytes - 1] ^= std::byte{1};
  }
}

void run_launched(void* argument) {
  const std::unique_ptr<Launched> launched(static_cast<Launched*>(argument));
  run(*launched->state, *launched->request);
  --launched->state->launched;
}

}  // namespace

ncclResult_t refuse(ncclResult_t result, const char* why) {
  const std::lock_guard lock(words_mutex);
  words = std::string("stand-in: ") + why;
  return result;
}

const char* last_words() {
  thread_local std::string mine;
  const std::lock_guard lock(words_mutex);
  mine = words;
  return mine.c_str();
}

void launch(const std::shared_ptr<State>& state) {
  ++state->launched;
  stand_in_note_operation(state->asked->works.size());
  cudaLaunchHostFunc(state->stream, run_launched, new Launched{state, std::move(state->asked)});
}

}  // namespace mylos::stand_in
