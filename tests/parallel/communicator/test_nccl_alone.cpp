#include "core/launch_bound.hpp"
#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/communicator/nccl/nccl_operations.hpp"
#include "parallel/communicator/nccl/nccl_streams.hpp"
#include "tests/parallel/communicator/communicator_contract.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

/// A group of one device over NCCL: the library is loaded, connects without blocking, keeps the order of streams, and
/// can be aborted. One GPU suffices. The program's communicators exchange nothing in a group of one, so these tests use
/// the operations themselves.
namespace mylos::parallel {
namespace {

using contract::on_device;
using contract::on_host;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t count = 100000, bytes = count * sizeof(double);

/// Work on a stream that lasts until open() is called. It must outlive that work.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) { check_cuda(cudaLaunchHostFunc(stream, &Gate::pass, this), "closing a gate"); }
  void open() {
    is_open_ = true;
    is_open_.notify_all();
  }

 private:
  static void pass(void* gate) { static_cast<Gate*>(gate)->is_open_.wait(false); }

  std::atomic<bool> is_open_{false};
};

/// Work on a stream that takes a while.
void pause_stream(cudaStream_t stream) {
  const auto sleep = [](void*) { std::this_thread::sleep_for(milliseconds(100)); };
  check_cuda(cudaLaunchHostFunc(stream, sleep, nullptr), "pausing a stream");
}

/// A mark in a stream.
class StreamMark {
 public:
  StreamMark() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  ~StreamMark() { cudaEventDestroy(event_); }
  StreamMark(const StreamMark&) = delete;
  StreamMark& operator=(const StreamMark&) = delete;

  void set(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording an event"); }
  void wait() const {
    while (is_pending(cudaEventQuery(event_))) std::this_thread::yield();
  }

 private:
  cudaEvent_t event_ = nullptr;
};

TEST(LaunchBoundTest, AStreamThatWaitsKeepsNoOtherThreadFromLaunching) {
  constexpr std::size_t all = 3000, most = 2 * LaunchBound<>::interval;
  const cudaStream_t stream = stream_of(ExecutionSpace());
  Gate gate(stream);
  std::atomic<std::size_t> launched{0};
  int device = 0;
  check_cuda(cudaGetDevice(&device), "asking for the device");
  std::jthread host([&] {
    check_cuda(cudaSetDevice(device), "choosing the device");
    LaunchBound<StreamMark> bound;
    for (; launched < all; ++launched) {
      bound(stream);
      with_work("test::launch", std::nullopt);
      check_cuda(cudaLaunchHostFunc(
                     stream, [](void*) {}, nullptr),
                 "launching");
    }
  });
  EXPECT_TRUE(tests::wait_until([&] { return launched >= most; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(launched, most);
  // The stand-in looks at a stream under the lock of all launches.
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  gate.open();
  host.join();
  EXPECT_EQ(launched, all);
  check_cuda(cudaStreamSynchronize(stream), "waiting");
}

class NcclAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string obstacle = nccl_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }

  static ncclUniqueId new_id() {
    ncclUniqueId id{};
    check_nccl(nccl_library(), nccl_library().get_unique_id(&id), nullptr, "making a group's id");
    return id;
  }

  std::shared_ptr<NcclLink> connected(CommunicationThread& thread) {
    auto link = std::make_shared<NcclLink>(device, 0, 1);
    const auto connect = std::make_shared<NcclConnect>(OperationName{"connection", 0, 0, 0}, link, new_id());
    thread.submit(connect);
    connect->wait_on_host();
    return link;
  }

  Event submit(CommunicationThread& thread, const std::shared_ptr<NcclLink>& link, NcclOperation::Step step) {
    auto operation =
        std::make_shared<NcclOperation>(OperationName{"step", bytes, 0, 0}, link, space,
                                        [step = std::move(step)] { return std::vector<NcclOperation::Step>{step}; });
    thread.submit(operation);
    return Event(std::move(operation));
  }

  /// Gathers `from` of this rank alone into `to`.
  Event gather(CommunicationThread& thread, const std::shared_ptr<NcclLink>& link, const Vector<double>& from,
               const Vector<double>& to) {
    return submit(thread, link, [link, from, to] { link->all_gather(from.data(), to.data(), bytes); });
  }

  void copy(const Vector<double>& from, const Vector<double>& to) {
    const cudaStream_t stream = stream_of(space);
    check_cuda(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream), "copying");
  }

  void expect_that_a_new_group_works() {
    CommunicationThread thread;
    const std::shared_ptr<NcclLink> link = connected(thread);
    const Vector<double> result("test::result", count);
    gather(thread, link, ones, result).wait(space);
    space.fence();
    EXPECT_THAT(on_host(result), Each(1.0));
    thread.finish();
  }

  ExecutionSpace space;
  std::shared_ptr<NcclDevice> device = make_nccl_device();
  const Vector<double> ones = on_device(std::vector<double>(count, 1.0));
};

TEST_F(NcclAlone, ConnectsWhileTheHostDoesOtherWork) {
  NcclLink link(device, 0, 1);
  link.begin(new_id());
  EXPECT_TRUE(tests::wait_until([&] { return link.is_ready(); }));
}

TEST_F(NcclAlone, OperationsBeginAfterEarlierLaunches) {
  CommunicationThread thread;
  {
    const std::shared_ptr<NcclLink> link = connected(thread);
    const Vector<double> written("test::written", count), gathered("test::gathered", count);
    space.fence();
    Gate gate(stream_of(space));
    copy(ones, written);
    const Event event = gather(thread, link, written, gathered);
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(event.done());
    gate.open();
    event.wait(space);
    check_cuda(cudaStreamSynchronize(stream_of(space)), "waiting for a stream");
    EXPECT_THAT(on_host(gathered), Each(1.0));
    event.wait_for_its_end();
    EXPECT_TRUE(event.done());
    thread.finish();
  }
}

TEST_F(NcclAlone, OperationsEndBeforeLaterLaunches) {
  CommunicationThread thread;
  {
    const std::shared_ptr<NcclLink> link = connected(thread);
    const Vector<double> gathered("test::gathered", count), read("test::read", count);
    space.fence();
    pause_stream(device->stream());
    gather(thread, link, ones, gathered).wait(space);
    copy(gathered, read);
    check_cuda(cudaStreamSynchronize(stream_of(space)), "waiting for a stream");
    EXPECT_THAT(on_host(read), Each(1.0));
    thread.finish();
  }
}

TEST_F(NcclAlone, EachCollectiveOfOneRankGivesItsOwnValues) {
  CommunicationThread thread;
  {
    const std::shared_ptr<NcclLink> link = connected(thread);
    const Vector<double> sum = on_device(std::vector<double>(count, 2.0)), part("test::part", count),
                         first("test::first", count), second("test::second", count);
    submit(thread, link, [link, sum] { link->all_reduce(ElementType::float64, sum.data(), count); }).wait(space);
    submit(thread, link, [link, sum] { link->broadcast(sum.data(), bytes, 0); }).wait(space);
    submit(thread, link, [link, sum, part] {
      link->reduce_scatter(ElementType::float64, sum.data(), part.data(), count);
    }).wait(space);
    submit(thread, link, [&, link] {
      link->group({[&] { link->all_gather(ones.data(), first.data(), bytes); },
                   [&] { link->all_gather(sum.data(), second.data(), bytes); }});
    }).wait(space);
    space.fence();
    EXPECT_THAT(on_host(sum), Each(2.0));
    EXPECT_THAT(on_host(part), Each(2.0));
    EXPECT_THAT(on_host(first), Each(1.0));
    EXPECT_THAT(on_host(second), Each(2.0));
    thread.finish();
  }
}

TEST_F(NcclAlone, AnAbortedConnectionLeavesTheDeviceUsable) {
  NcclLink link(device, 0, 1);
  link.begin(new_id());
  link.abort();
  expect_that_a_new_group_works();
}

TEST_F(NcclAlone, AnAbortedOperationFailsAndLeavesTheDeviceUsable) {
  CommunicationThread thread;
  {
    const std::shared_ptr<NcclLink> link = connected(thread);
    const Vector<double> result("test::result", count);
    Gate gate(device->stream());
    const Event event = gather(thread, link, ones, result);
    // Aborting may wait for the stream.
    const std::jthread opening([&gate] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      gate.open();
    });
    thread.abandon();
    EXPECT_THAT(tests::error_of([&] { event.wait(space); }), HasSubstr("given up"));
    check_cuda(cudaStreamSynchronize(device->stream()), "waiting for a stream");
  }
  expect_that_a_new_group_works();
}

}  // namespace
}  // namespace mylos::parallel
