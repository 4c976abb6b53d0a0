#include "parallel/communicator/communicator.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/operation_checks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

namespace mylos::parallel {
namespace {

std::atomic<std::uint64_t> sent{0}, messages{0}, message_bytes{0}, network_bytes{0};
std::atomic<std::uint64_t> waited_nanoseconds{0};

class AllOf final : public Event::Operation {
 public:
  explicit AllOf(std::vector<std::shared_ptr<Event::Operation>> operations) : operations_(std::move(operations)) {}

  void wait(const ExecutionSpace& space) override {
    for (const auto& operation : operations_) operation->wait(space);
  }
  bool done() override {
    return std::ranges::all_of(operations_, [](const auto& operation) { return operation->done(); });
  }
  void wait_for_its_end() noexcept override {
    for (const auto& operation : operations_) operation->wait_for_its_end();
  }
  void discard(const ExecutionSpace& space) override {
    for (const auto& operation : operations_) operation->discard(space);
  }

 private:
  std::vector<std::shared_ptr<Event::Operation>> operations_;
};

/// Exchanges arrays one after another. `check` is called for all of them first, so that an error leaves none under way.
template <class Array, class Check, class Exchange>
Event one_by_one(std::span<const Array> arrays, const Check& check, const Exchange& exchange) {
  for (const Array& array : arrays) check(array);
  std::vector<Event> events;
  for (const Array& array : arrays) events.push_back(exchange(array));
  return Event::all_of(events);
}

}  // namespace

Event Event::all_of(std::span<const Event> events) {
  std::vector<std::shared_ptr<Operation>> operations;
  for (const Event& event : events) {
    if (event.operation_) operations.push_back(event.operation_);
  }
  if (operations.empty()) return {};
  if (operations.size() == 1) return Event(std::move(operations.front()));
  return Event(std::make_shared<AllOf>(std::move(operations)));
}

void Event::wait(const ExecutionSpace& space) const {
  using Clock = std::chrono::steady_clock;
  if (!operation_) return;
  const Clock::time_point begin = Clock::now();
  operation_->wait(space);
  waited_nanoseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

Event Communicator::all_reduce_coalesced(const ExecutionSpace& space, std::span<const NamedArray> arrays) {
  return one_by_one(
      arrays, [](const NamedArray& array) { check_all_reduce(array.data, array.what); },
      [&](const NamedArray& array) { return all_reduce(space, array.data, array.what); });
}

Event Communicator::reduce_scatter_coalesced(const ExecutionSpace& space, std::span<const NamedParts> arrays) {
  return one_by_one(
      arrays,
      [this](const NamedParts& parts) { check_reduce_scatter(parts.all, parts.mine, rank(), size(), parts.what); },
      [&](const NamedParts& parts) { return reduce_scatter(space, parts.all, parts.mine, parts.what); });
}

Event Communicator::all_gather_coalesced(const ExecutionSpace& space, std::span<const NamedParts> arrays) {
  return one_by_one(
      arrays, [this](const NamedParts& parts) { check_all_gather(parts.mine, parts.all, rank(), size(), parts.what); },
      [&](const NamedParts& parts) { return all_gather(space, parts.mine, parts.all, parts.what); });
}

double waited_seconds() { return 1e-9 * static_cast<double>(waited_nanoseconds.load()); }

std::uint64_t sent_bytes() { return sent; }

void count_sent(std::size_t bytes) { sent += bytes; }

Traffic traffic() { return {messages, message_bytes, network_bytes}; }

void count_message(std::size_t bytes, bool leaves_node) {
  ++messages;
  message_bytes += bytes;
  if (leaves_node) network_bytes += bytes;
}

std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return 4;
    case ElementType::float64:
    case ElementType::int64:
      return 8;
    case ElementType::bfloat16:
      return 2;
    case ElementType::byte:
      return 1;
  }
  fail("an element type of no size");
}

Buffer buffer_of(const Vector<float>& vector) {
  return {vector.data(), vector.size(), ElementType::float32, MemoryKind::device};
}

Buffer buffer_of(const Vector<bfloat16>& vector) {
  return {vector.data(), vector.size(), ElementType::bfloat16, MemoryKind::device};
}

Buffer buffer_of(const Vector<std::byte>& vector) {
  return {vector.data(), vector.size(), ElementType::byte, MemoryKind::device};
}

}  // namespace mylos::parallel
