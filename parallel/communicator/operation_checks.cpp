#include "parallel/communicator/operation_checks.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <functional>

namespace mylos::parallel {
namespace {

void check_memory(const Buffer& buffer, const std::string& what) {
  require(buffer.count == 0 || buffer.data != nullptr,
          fmt::format("{}: {} elements at no address", what, buffer.count));
}

void check_sum(ElementType type, const std::string& what) {
  require(type != ElementType::byte, fmt::format("{}: bytes have no sum", what));
}

/// Whether an array may end in padding, which it leaves out. A group of one has none.
enum class Padding { none, at_end };

void check_parts(const Buffer& all, const Buffer& mine, std::size_t ranks, Padding padding, const std::string& what) {
  check_memory(all, what);
  check_memory(mine, what);
  const std::size_t most = mine.count * ranks;
  require(all.count == most || (padding == Padding::at_end && ranks > 1 && all.count < most),
          fmt::format("{}: {} elements for {} parts of {}", what, all.count, ranks, mine.count));
  require(all.memory == mine.memory, fmt::format("{}: a part is on the host and the whole on the device", what));
}

/// Checks that `mine` either does not overlap `all`, or is its part `rank`.
void check_overlap(const Buffer& all, const Buffer& mine, std::size_t rank, const std::string& what) {
  if (mine.count == 0 || !overlap(all, mine)) return;
  const auto* const whole = static_cast<const std::byte*>(all.data);
  require(all.type == mine.type && mine.data == whole + rank * bytes_of(mine),
          fmt::format("{}: what rank {} has overlaps the array of all, but is not its part {}", what, rank, rank));
}

void check_gathered(const Buffer& mine, const Buffer& all, std::size_t rank, std::size_t ranks, Padding padding,
                    const std::string& what) {
  check_parts(all, mine, ranks, padding, what);
  require(all.type == mine.type, fmt::format("{}: a part has another type than the whole", what));
  check_overlap(all, mine, rank, what);
}

}  // namespace

std::size_t bytes_of(const Buffer& buffer) { return buffer.count * bytes_of(buffer.type); }

bool overlap(const Buffer& a, const Buffer& b) {
  const auto* const a_begin = static_cast<const std::byte*>(a.data);
  const auto* const b_begin = static_cast<const std::byte*>(b.data);
  const std::less<> before;
  return before(a_begin, b_begin + bytes_of(b)) && before(b_begin, a_begin + bytes_of(a));
}

void check_all_reduce(const Buffer& data, const std::string& what) {
  check_memory(data, what);
  check_sum(data.type, what);
}

void check_reduce_scatter(const Buffer& all, const Buffer& mine, std::size_t rank, std::size_t ranks,
                          const std::string& what) {
  check_parts(all, mine, ranks, Padding::at_end, what);
  check_sum(all.type, what);
  const bool widened = all.type == ElementType::bfloat16 && mine.type == ElementType::float32;
  require(all.type == mine.type || widened, fmt::format("{}: sums have another type than what is summed", what));
  check_overlap(all, mine, rank, what);
}

void check_all_gather(const Buffer& mine, const Buffer& all, std::size_t rank, std::size_t ranks,
                      const std::string& what) {
  check_gathered(mine, all, rank, ranks, Padding::at_end, what);
}

void check_broadcast(const Buffer& data, std::size_t root, std::size_t ranks, const std::string& what) {
  check_memory(data, what);
  require(root < ranks, fmt::format("{}: from rank {} of {}", what, root, ranks));
}

void check_gather(const Buffer& mine, const Buffer& all, std::size_t rank, std::size_t root, std::size_t ranks,
                  const std::string& what) {
  require(root < ranks, fmt::format("{}: to rank {} of {}", what, root, ranks));
  if (rank == root) return check_gathered(mine, all, rank, ranks, Padding::none, what);
  check_memory(mine, what);
}

void check_transfer(const Buffer& data, std::size_t from, std::size_t to, std::size_t ranks, const std::string& what) {
  check_memory(data, what);
  require(from < ranks && to < ranks, fmt::format("{}: from rank {} to rank {} of {}", what, from, to, ranks));
}

}  // namespace mylos::parallel
