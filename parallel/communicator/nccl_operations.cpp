#include "parallel/communicator/nccl_operations.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/nccl_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

namespace mylos::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using Progress = QueuedOperation::Progress;

/// How long to wait for what ends soon or never.
constexpr std::chrono::seconds ending_patience{2};

void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(fmt::format("CUDA: {}: {}", what, cudaGetErrorString(error)));
}

/// What a query says of work under way. CUDA keeps it as the thread's last error, which others would take for theirs.
bool is_pending(cudaError_t state) {
  if (state != cudaErrorNotReady) return false;
  cudaGetLastError();
  return true;
}

/// Asks `done` until it says so, or for a while.
template <class Done>
bool wait_a_while(const Done& done) {
  const Clock::time_point end = Clock::now() + ending_patience;
  while (!done()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

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

NcclDevice::NcclDevice() {
  check_cuda(cudaGetDevice(&device_), "asking for the device in use");
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
  // What other ranks wait for goes before what this one computes.
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "making a stream");
  space_.emplace(space_over(stream_));
}

NcclDevice::~NcclDevice() {
  // Where Kokkos has not ended. Errors are of no use here: the driver may have gone before.
  cudaSetDevice(device_);
  space_.reset();
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  if (memory_ != nullptr) cudaFree(memory_);
  cudaStreamDestroy(stream_);
}

void NcclDevice::use() const { check_cuda(cudaSetDevice(device_), "choosing the device"); }

cudaEvent_t NcclDevice::take_event() {
  {
    const std::lock_guard lock(events_mutex_);
    if (!events_.empty()) {
      const cudaEvent_t event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

void NcclDevice::give_back(cudaEvent_t event) noexcept {
  const std::lock_guard lock(events_mutex_);
  events_.push_back(event);
}

std::byte* NcclDevice::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return memory_;
  if (memory_ != nullptr) check_cuda(cudaFree(memory_), "freeing memory for what ranks exchange");
  memory_ = nullptr;
  bytes_ = 0;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "memory for what ranks exchange");
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  return memory_;
}

void NcclDevice::sum(ElementType type, const RankParts& parts, std::size_t count, ElementType sum_type, void* sums) {
  const std::lock_guard lock(space_mutex_);
  ensure(space_.has_value(), "Kokkos has ended before a sum over ranks");
  launch_sum(*space_, stream_, type, parts, count, sum_type, sums);
}

void NcclDevice::leave_kokkos() {
  const std::lock_guard lock(space_mutex_);
  space_.reset();
}

std::shared_ptr<NcclDevice> make_nccl_device() {
  auto device = std::make_shared<NcclDevice>();
  Kokkos::push_finalize_hook([weak = std::weak_ptr(device)] {
    if (const std::shared_ptr<NcclDevice> still_there = weak.lock()) still_there->leave_kokkos();
  });
  return device;
}

void DeviceEvent::record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording an event"); }

void DeviceEvent::hold_up(cudaStream_t stream) const {
  check_cuda(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
}

bool DeviceEvent::has_come() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (is_pending(state)) return false;
  check_cuda(state, "on the device");
  return true;
}

NcclLink::~NcclLink() {
  if (communicator_ == nullptr) return;
  try {
    device_->use();
    check(library_.comm_finalize(communicator_), "ending");
    if (wait_a_while([this] { return settled(); })) {
      library_.comm_destroy(communicator_);
      return;
    }
  } catch (const std::exception&) {  // told by the operation that failed
  }
  library_.comm_abort(communicator_);
}

void NcclLink::begin(const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(library_.comm_init(&communicator_, static_cast<int>(ranks_), id, static_cast<int>(rank_), &config),
        "connecting devices");
}

bool NcclLink::settled() const {
  ncclResult_t state = ncclSuccess;
  check(library_.comm_get_async_error(communicator_, &state), "asking for its state");
  check(state, "between devices");
  return state != ncclInProgress;
}

void NcclLink::abort() noexcept {
  if (communicator_ == nullptr) return;
  cudaSetDevice(device_->index());
  library_.comm_abort(communicator_);
  communicator_ = nullptr;
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

void NcclLink::exchange(const std::vector<Message>& sent, const std::vector<Message>& received) {
  const auto is_empty = [](const Message& message) { return message.bytes == 0; };
  if (std::ranges::all_of(sent, is_empty) && std::ranges::all_of(received, is_empty)) return;
  check(library_.group_start(), "beginning an exchange");
  ncclResult_t first_error = ncclSuccess;
  const auto note = [&](ncclResult_t result) {
    if (first_error == ncclSuccess && result != ncclInProgress) first_error = result;
  };
  for (const Message& message : sent) {
    if (message.bytes == 0) continue;
    note(library_.send(message.data, message.bytes, ncclUint8, static_cast<int>(message.peer), communicator_,
                       device_->stream()));
  }
  for (const Message& message : received) {
    if (message.bytes == 0) continue;
    note(library_.receive(message.data, message.bytes, ncclUint8, static_cast<int>(message.peer), communicator_,
                          device_->stream()));
  }
  note(library_.group_end());  // also after an error: the group is the thread's
  check(first_error, "exchanging");
}

Progress NcclConnect::advance() {
  if (!begun_) {
    link_->device()->use();
    link_->begin(id_);
    begun_ = true;
  }
  return link_->settled() ? Progress::done : Progress::waiting;
}

NcclOperation::NcclOperation(OperationName name, std::shared_ptr<NcclLink> link, const ExecutionSpace& space,
                             std::vector<Step> steps)
    : QueuedOperation(std::move(name)),
      link_(std::move(link)),
      ready_(link_->device()),
      ended_(link_->device()),
      steps_(std::move(steps)) {
  ready_.record(stream_of(space));
}

Progress NcclOperation::advance() {
  const cudaStream_t stream = link_->device()->stream();
  if (!begun_) {
    link_->device()->use();
    ready_.hold_up(stream);
    begun_ = true;
  }
  if (!link_->settled()) return Progress::waiting;
  if (stage_ == Stage::launched) return ended_.has_come() ? Progress::done : Progress::waiting;
  if (next_step_ < steps_.size()) {
    steps_[next_step_++]();
  } else {
    ended_.record(stream);
    set(Stage::launched);
  }
  return Progress::moved;
}

void NcclOperation::give_up() noexcept {
  link_->abort();
  // The memory of its arrays may go when it has failed.
  const cudaStream_t stream = link_->device()->stream();
  if (begun_) wait_a_while([stream] { return !is_pending(cudaStreamQuery(stream)); });
  set(Stage::given_up);
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
