#include "parallel/communicator/staging_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace mylos::parallel {

using Memory = PinnedVector<std::byte>;

std::size_t StagingBlocks::take(std::size_t bytes) {
  auto best = free_.end();
  for (auto each = free_.begin(); each != free_.end(); ++each) {
    const bool suits = *each >= bytes && *each / 2 <= bytes;
    if (suits && (best == free_.end() || *each < *best)) best = each;
  }
  if (best == free_.end()) {
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    bytes_ += size;
    return size;
  }
  const std::size_t size = *best;
  *best = free_.back();
  free_.pop_back();
  return size;
}

struct StagingMemory::State {
  std::mutex mutex;
  StagingBlocks blocks;
  std::vector<Memory> free;
  bool ends_with_kokkos = false;

  void give_back(Memory&& memory) {
    const std::lock_guard lock(mutex);
    blocks.give_back(memory.size());
    free.push_back(std::move(memory));
  }

  /// Takes a block for `bytes`. Returns its size, and its memory if it is not a new one.
  std::pair<std::size_t, Memory> take(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    const std::size_t size = blocks.take(bytes);
    const auto found = std::ranges::find_if(free, [&](const Memory& each) { return each.size() == size; });
    if (found == free.end()) return {size, Memory()};
    std::iter_swap(found, std::prev(free.end()));
    Memory memory = std::move(free.back());
    free.pop_back();
    return {size, std::move(memory)};
  }
};

StagingMemory::StagingMemory() : state_(std::make_shared<State>()) {}

StagingMemory::Block StagingMemory::take(std::size_t bytes) {
  auto [size, memory] = state_->take(bytes);
  if (memory.data() == nullptr) {
    // A communicator may outlive Kokkos, but Views must not.
    if (!std::exchange(state_->ends_with_kokkos, true)) {
      Kokkos::push_finalize_hook([weak = std::weak_ptr(state_)] {
        if (const auto state = weak.lock()) state->free.clear();
      });
    }
    memory = Memory(Kokkos::view_alloc("mylos::communicator::image", Kokkos::WithoutInitializing), size);
  }
  std::byte* const data = memory.data();
  return {data,
          [state = state_, block = std::move(memory)](std::byte*) mutable { state->give_back(std::move(block)); }};
}

std::size_t StagingMemory::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->blocks.size();
}

}  // namespace mylos::parallel
