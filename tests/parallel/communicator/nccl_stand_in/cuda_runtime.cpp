#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace {

constexpr int devices = 2;
constexpr int poison = 0xFF;
/// Entries that a stream holds before the next launch blocks.
constexpr std::size_t launch_queue = 1024;

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<bool> device_failed{false};
std::atomic<std::size_t> longest_queue{0}, operations{0}, operation_calls{0};
/// Held by each launch, query, allocation and release, also while a launch waits for room in its stream's queue, or a
/// release for the device.
std::mutex driver;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Returns the result of a query: every query fails once a kernel has failed.
cudaError_t result_of_work(bool ended) {
  if (device_failed) return result(cudaErrorLaunchFailure);
  return result(ended ? cudaSuccess : cudaErrorNotReady);
}

/// A position in a stream, once it has been recorded.
class Point {
 public:
  void reach() {
    {
      const std::lock_guard lock(mutex_);
      reached_ = true;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  bool reached() {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
};

}  // namespace

struct CUevent_st {
  explicit CUevent_st(int its_device) : device(its_device) {}

  const int device;
  std::mutex mutex;
  std::shared_ptr<Point> point;  ///< null until it is recorded
};

struct CUstream_st {
 public:
  explicit CUstream_st(int its_device) : device(its_device), thread_([this] { run(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  void add(std::function<void()> work) {
    const std::lock_guard launch(driver);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return work_.size() < launch_queue; });
      work_.push_back(std::move(work));
      if (work_.size() > longest_queue) longest_queue = work_.size();
    }
    changed_.notify_all();
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return work_.empty();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty(); });
  }

  const int device;

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty() || closing_; });
      if (work_.empty()) return;
      const std::function<void()>& first = work_.front();  // other threads only append
      lock.unlock();
      first();
      lock.lock();
      work_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  ///< the first entry is running
  bool closing_ = false;
  std::thread thread_;
};

namespace {

/// Never destroyed, because streams may still be working when the program ends.
struct Registry {
  std::mutex mutex;
  std::set<cudaStream_t> streams;
  std::map<void*, std::size_t> memory;
  std::size_t bytes = 0;  ///< of `memory`
};
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

/// Returns the device's memory in bytes.
std::size_t memory_size() {
  const char* const given = std::getenv("CUDA_STAND_IN_MEMORY");
  return given == nullptr ? std::size_t{1} << 40 : std::stoull(given);
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return result(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  *stream = new CUstream_st(current_device);
  const std::lock_guard lock(registry().mutex);
  registry().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(registry().mutex);
    if (registry().streams.erase(stream) == 0) return result(cudaErrorInvalidResourceHandle);
  }
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  *device = stream->device;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard query(driver);
  return result_of_work(stream->idle());
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream->wait();
  return result_of_work(true);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  std::shared_ptr<Point> point;
  {
    const std::lock_guard lock(event->mutex);
    point = event->point;
  }
  if (point) stream->add([point] { point->wait(); });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  stream->add([function, argument] { function(argument); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = new CUevent_st(current_device);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != stream->device) return result(cudaErrorInvalidResourceHandle);
  const auto point = std::make_shared<Point>();
  {
    const std::lock_guard lock(event->mutex);
    event->point = point;
  }
  stream->add([point] { point->reach(); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard query(driver);
  const std::lock_guard lock(event->mutex);
  return result_of_work(!event->point || event->point->reached());
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const std::scoped_lock lock(driver, registry().mutex);
  if (registry().bytes + bytes > memory_size()) return result(cudaErrorMemoryAllocation);
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return result(cudaErrorMemoryAllocation);
  std::memset(*memory, poison, bytes);
  registry().memory[*memory] = bytes;
  registry().bytes += bytes;
  return cudaSuccess;
}

/// Waits for all work on the device, as CUDA does.
cudaError_t cudaFree(void* memory) {
  const std::scoped_lock lock(driver, registry().mutex);
  const auto found = registry().memory.find(memory);
  if (found == registry().memory.end()) return result(cudaErrorInvalidValue);
  for (const cudaStream_t stream : registry().streams) {
    if (!device_failed) stream->wait();
  }
  std::memset(memory, poison, found->second);
  registry().bytes -= found->second;
  registry().memory.erase(found);
  std::free(memory);
  return result_of_work(true);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  stream->add([to, from, bytes] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

size_t stand_in_busy_streams() {
  if (device_failed) return 0;
  const std::lock_guard lock(registry().mutex);
  size_t busy = 0;
  for (const cudaStream_t stream : registry().streams) busy += stream->idle() ? 0 : 1;
  return busy;
}

size_t stand_in_longest_queue() { return longest_queue; }
void stand_in_note_operation(size_t calls) {
  operation_calls += calls;
  ++operations;
}
size_t stand_in_operations() { return operations; }
size_t stand_in_calls() { return operation_calls; }

void stand_in_fail_device() { device_failed = true; }
int stand_in_device_failed() { return device_failed ? 1 : 0; }

}  // extern "C"
