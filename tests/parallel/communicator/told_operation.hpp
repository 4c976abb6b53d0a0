#pragma once

#include "parallel/communicator/communication_thread.hpp"

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace mylos::parallel {

/// An operation that is launched, ends, or fails on request.
class Told final : public QueuedOperation {
 public:
  enum class Order { wait, launch, end, fail };

  explicit Told(std::string what, const void* stream = nullptr, bool host_memory_only = false)
      : QueuedOperation({std::move(what), 0, 0, 0}), stream_(stream), host_memory_only_(host_memory_only) {}

  Progress advance() override {
    begun = true;
    switch (order) {
      case Order::launch:
        return Progress::launched;
      case Order::end:
        return Progress::done;
      case Order::fail:
        throw std::runtime_error("the network is down");
      default:
        return Progress::waiting;
    }
  }
  const void* stream() const override { return stream_; }
  bool uses_host_memory_only() const override { return host_memory_only_; }
  void stop() noexcept override {
    stopped = true;
    if (on_stop) on_stop();
  }
  bool has_stopped() const noexcept override { return stops; }
  void give_up() noexcept override { was_done_when_given_up = done() ? 1 : 0; }

  std::atomic<Order> order{Order::wait};
  std::atomic<bool> begun{false};
  std::atomic<int> was_done_when_given_up{-1};
  std::atomic<bool> stopped{false}, stops{true};
  std::function<void()> on_stop;

 private:
  const void* stream_;
  bool host_memory_only_;
};

}  // namespace mylos::parallel
