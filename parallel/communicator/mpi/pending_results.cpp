#include "parallel/communicator/mpi/pending_results.hpp"

#include "parallel/communicator/operation_checks.hpp"

#include <utility>

namespace mylos::parallel {
void PendingResults::add(std::shared_ptr<QueuedOperation> operation, const Buffer& result) {
  if (!std::exchange(ends_with_kokkos_, true)) {
    Kokkos::push_finalize_hook([weak = weak_from_this()] {
      const auto results = weak.lock();
      if (results == nullptr) return;
      for (Pending& each : results->pending_) each.operation.reset();
    });
  }
  pending_.push_back({std::move(operation), result});
}

void PendingResults::drop(const QueuedOperation& operation) noexcept {
  for (Pending& each : pending_) {
    if (each.operation.get() == &operation) each.operation.reset();
  }
}

void PendingResults::write_back(std::uint64_t count, const ExecutionSpace& space) {
  while (written_ < count) {
    const std::shared_ptr<QueuedOperation> operation = std::move(pending_.front().operation);
    pending_.pop_front();
    ++written_;
    if (operation) operation->take_result(space);
  }
}

void PendingResults::write_back_into(const Buffer& buffer, const ExecutionSpace& space) {
  std::size_t last = pending_.size();
  const auto is_there = [&](const Pending& each) { return each.operation && overlap(each.result, buffer); };
  while (last > 0 && !is_there(pending_[last - 1])) --last;
  write_back(written_ + last, space);
}

}  // namespace mylos::parallel
