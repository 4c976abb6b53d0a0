#include "core/arena.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace mylos {
namespace {

constexpr std::size_t alignment = 256;

Vector<std::byte> allocate(const std::string& label, std::size_t bytes) {
  try {
    return uninitialized<std::byte>(label, bytes);
  } catch (const std::exception&) {  // Kokkos throws std::bad_alloc or its own type, depending on the version
    fail(fmt::format("{}: cannot allocate {:.2f} GiB of memory; use a smaller {}", label,
                     static_cast<double>(bytes) / (1u << 30), setting("micro-batch")));
  }
}

}  // namespace

Arena::Arena(const std::string& label, std::size_t bytes) : memory_(allocate(label, std::max(bytes, alignment))) {}

std::byte* Arena::take(std::size_t bytes) {
  const std::size_t begin = used_;
  used_ = (begin + bytes + alignment - 1) / alignment * alignment;
  peak_ = std::max(peak_, used_);
  if (measuring()) return nullptr;
  require(used_ <= capacity(), fmt::format("arena {}: {} bytes are needed, {} were planned: the batch is larger than "
                                           "the plan's, or plan and pass differ",
                                           memory_.label(), used_, capacity()));
  return memory_.data() + begin;
}

}  // namespace mylos
