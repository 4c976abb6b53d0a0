#include "parallel/communicator/nccl/nccl_operations.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/nccl/nccl_streams.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

namespace mylos::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using Progress = QueuedOperation::Progress;

/// How long ranks wait for each other when they end a communicator; NCCL closes the connections of many ranks in
/// seconds.
constexpr std::chrono::seconds finalize_patience{30};

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return ncclFloat32;
    case ElementType::float64:
      return ncclFloat64;
    case ElementType::int64:
      return ncclInt64;
    case ElementType::bfloat16:
    case ElementType::byte:
      break;
  }
  fail("NCCL: a type that it does not sum here");
}

}  // namespace

void NcclLink::begin(const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(library_.comm_init(&communicator_, static_cast<int>(ranks_), id, static_cast<int>(rank_), &config),
        "connecting devices");
}

bool NcclLink::is_ready() const {
  ncclResult_t state = ncclSuccess;
  check(library_.comm_get_async_error(communicator_, &state), "asking for its state");
  check(state, "between devices");
  return state != ncclInProgress;
}

void NcclLink::finalize() { check(library_.comm_finalize(communicator_), "ending"); }

void NcclLink::end(decltype(NcclLibrary::comm_abort) call) noexcept {
  if (communicator_ == nullptr || std::exchange(is_ending_, true)) return;
  const auto work = [this, call] {
    cudaSetDevice(device_->index());
    call(communicator_);
    // The memory of arrays may be freed afterwards.
    while (is_pending(cudaStreamQuery(device_->stream()))) std::this_thread::sleep_for(std::chrono::microseconds(100));
    is_ended_ = true;
  };
  try {
    ending_ = std::jthread(work);
  } catch (const std::system_error&) {  // The system refuses a thread. The call may return all the same.
    work();
  }
}

void NcclLink::all_reduce(ElementType type, void* data, std::size_t count) {
  check(library_.all_reduce(data, data, count, nccl_type(type), ncclSum, communicator_, device_->stream()), "a sum");
}

void NcclLink::reduce_scatter(ElementType type, const void* all, void* mine, std::size_t count) {
  check(library_.reduce_scatter(all, mine, count, nccl_type(type), ncclSum, communicator_, device_->stream()),
        "a sum of parts");
}

void NcclLink::all_gather(const void* mine, void* all, std::size_t bytes) {
  check(library_.all_gather(mine, all, bytes, ncclUint8, communicator_, device_->stream()), "gathering");
}

void NcclLink::broadcast(void* data, std::size_t bytes, std::size_t root) {
  check(library_.broadcast(data, data, bytes, ncclUint8, static_cast<int>(root), communicator_, device_->stream()),
        "sending to all");
}

template <class Calls>
void NcclLink::in_group(const char* what, const Calls& calls) {
  check(library_.group_start(), what);
  try {
    calls();
  } catch (const std::exception&) {
    library_.group_end();  // also after an error: the group belongs to the thread
    throw;
  }
  check(library_.group_end(), what);
}

void NcclLink::exchange(const std::vector<Message>& sent, const std::vector<Message>& received) {
  const auto is_empty = [](const Message& message) { return message.bytes == 0; };
  if (std::ranges::all_of(sent, is_empty) && std::ranges::all_of(received, is_empty)) return;
  in_group("exchanging", [&] {
    for (const Message& message : sent) {
      if (message.bytes == 0) continue;
      check(library_.send(message.data, message.bytes, ncclUint8, static_cast<int>(message.peer), communicator_,
                          device_->stream()),
            "sending");
    }
    for (const Message& message : received) {
      if (message.bytes == 0) continue;
      check(library_.receive(message.data, message.bytes, ncclUint8, static_cast<int>(message.peer), communicator_,
                             device_->stream()),
            "receiving");
    }
  });
}

void NcclLink::group(const std::vector<std::function<void()>>& calls) {
  in_group("a group of arrays", [&] {
    for (const auto& call : calls) call();
  });
}

Progress NcclConnect::advance() {
  if (!begun_) {
    link_->device()->use();
    link_->begin(id_);
    begun_ = true;
  }
  return link_->is_ready() ? Progress::done : Progress::waiting;
}

Progress NcclDisconnect::advance() {
  if (alone_) link_->abort();
  if (alone_ || link_->is_ending()) return link_->is_ended() ? Progress::done : Progress::waiting;
  try {
    if (!finalized_at_) {
      link_->device()->use();
      link_->finalize();
      finalized_at_ = Clock::now();
    }
    if (link_->is_ready()) {
      link_->destroy();
    } else if (Clock::now() - *finalized_at_ > finalize_patience) {
      link_->abort();
    }
  } catch (const std::exception&) {
    link_->abort();
  }
  return Progress::moved;
}

NcclOperation::NcclOperation(OperationName name, std::shared_ptr<NcclLink> link, const ExecutionSpace& space,
                             MakeSteps make_steps)
    : QueuedOperation(std::move(name)),
      link_(std::move(link)),
      ready_(link_->device()),
      ended_(link_->device()),
      make_steps_(std::move(make_steps)) {
  ready_.record(stream_of(space));
}

Progress NcclOperation::advance() {
  NcclDevice& device = *link_->device();
  const cudaStream_t stream = device.stream();
  if (!begun_) {
    device.use();
    steps_ = make_steps_();
    ready_.hold_up(stream);
    begun_ = true;
  }
  const bool ready = link_->is_ready();
  if (stage_ == Stage::launched) return ended_.has_come() ? Progress::done : Progress::launched;
  if (!ready) return Progress::waiting;
  if (next_step_ < steps_.size()) {
    if (!device.has_room()) return Progress::waiting;
    steps_[next_step_++]();
    device.note_launch();
  } else {
    ended_.record(stream);
    set(Stage::launched);
    return Progress::launched;
  }
  return Progress::moved;
}

void NcclOperation::set(Stage stage) {
  stage_ = stage;
  stage_.notify_all();
}

void NcclOperation::wait(const ExecutionSpace& space) {
  stage_.wait(Stage::launching);
  if (stage_ == Stage::given_up) {
    wait_on_host();  // throws
    return;
  }
  ended_.hold_up(stream_of(space));
}

}  // namespace mylos::parallel
