#include "parallel/communicator/image_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace mylos::parallel {

using Memory = PinnedVector<std::byte>;

struct ImageMemory::State {
  std::mutex mutex;
  std::vector<Memory> free;
  std::size_t bytes = 0;
  bool ends_with_kokkos = false;

  void give_back(Memory&& memory) {
    const std::lock_guard lock(mutex);
    free.push_back(std::move(memory));
  }

  /// Returns the smallest free block that fits and is at most about twice as large; empty if there is none.
  Memory find(std::size_t size) {
    const std::lock_guard lock(mutex);
    auto best = free.end();
    for (auto each = free.begin(); each != free.end(); ++each) {
      const bool suits = each->size() >= size && each->size() / 2 <= size;
      if (suits && (best == free.end() || each->size() < best->size())) best = each;
    }
    if (best == free.end()) return {};
    std::iter_swap(best, std::prev(free.end()));
    Memory found = std::move(free.back());
    free.pop_back();
    return found;
  }
};

ImageMemory::ImageMemory() : state_(std::make_shared<State>()) {}

ImageMemory::Block ImageMemory::take(std::size_t bytes) {
  Memory memory = state_->find(bytes);
  if (memory.data() == nullptr) {
    // A communicator may outlive Kokkos, but Views must not.
    if (!std::exchange(state_->ends_with_kokkos, true)) {
      Kokkos::push_finalize_hook([weak = std::weak_ptr(state_)] {
        if (const auto state = weak.lock()) state->free.clear();
      });
    }
    memory = Memory(Kokkos::view_alloc("mylos::communicator::image", Kokkos::WithoutInitializing),
                    std::max<std::size_t>(bytes, 1));
    state_->bytes += memory.size();
  }
  std::byte* const data = memory.data();
  return {data, [state = state_, memory](std::byte*) mutable { state->give_back(std::move(memory)); }};
}

std::size_t ImageMemory::size() const { return state_->bytes; }

}  // namespace mylos::parallel
