#include "parallel/communicator/node_arrays.hpp"

#include "core/base/text/quantities.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/node_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

namespace mylos::parallel {
namespace {

constexpr const char* what = "data of the first rank";

/// Makes shared memory from a size or a location. Returns null and sets `error` if that fails.
template <class From>
std::shared_ptr<SharedMemory> try_sharing(const From& from, std::string& error) {
  const FileWork reserving;
  try {
    return std::make_shared<SharedMemory>(from);
  } catch (const std::exception& failure) {
    error = failure.what();
    return nullptr;
  }
}

}  // namespace

void NodeArrays::form_groups() {
  const NodeMap& nodes = ranks_.node_map();
  const std::size_t rank = ranks_.rank();
  node_ = ranks_.split(nodes.node_of(rank), rank);
  leaders_ = ranks_.split(nodes.local_of(rank) == 0 ? 0 : 1, rank);
}

bool NodeArrays::is_leader() const { return node_->rank() == 0; }

std::shared_ptr<SharedMemory> NodeArrays::share(std::size_t bytes) {
  if (node_->size() == 1 || !obstacle_.empty()) return nullptr;
  std::shared_ptr<SharedMemory> memory;
  SharedMemory::Location location;
  std::string error;
  if (is_leader()) memory = try_sharing(bytes, error);
  if (memory) location = memory->location();
  broadcast_in_place(*node_, std::as_writable_bytes(std::span(&location, 1)), what);
  if (!is_leader() && location.descriptor >= 0) memory = try_sharing(location, error);
  if (maximum(*node_, error.empty() ? 0 : 1) == 0) return memory;
  const std::vector<std::string> errors = gather(*node_, error);
  obstacle_ = *std::ranges::find_if(errors, [](const std::string& each) { return !each.empty(); });
  return nullptr;
}

SharedBytes NodeArrays::pass_on(std::span<const std::byte> array, std::size_t bytes) {
  if (!node_) form_groups();
  const bool is_first = ranks_.rank() == 0;
  const std::shared_ptr<SharedMemory> shared = share(bytes);
  const auto copy = std::make_shared<std::vector<std::byte>>(shared || is_first ? 0 : bytes);
  std::span<std::byte> target(*copy);
  if (shared) {
    target = is_leader() ? shared->writable() : std::span<std::byte>();
  } else if (is_first) {
    target = {const_cast<std::byte*>(array.data()), array.size()};  // only read
  }
  for (std::size_t begin = 0; begin < bytes; begin += piece_) {
    const std::size_t size = std::min(piece_, bytes - begin);
    if (is_leader()) {
      const std::span<std::byte> piece = target.subspan(begin, size);
      if (is_first && shared) std::ranges::copy(array.subspan(begin, size), piece.begin());
      broadcast_in_place(*leaders_, piece, what);
    }
    if (shared) {
      node_->barrier("data in shared memory");  // a rank never waits for more than a piece
    } else {
      broadcast_in_place(*node_, target.subspan(begin, size), what);
    }
  }
  if (shared && is_leader()) shared->seal();
  if (shared) return {shared->bytes(), shared};
  return is_first ? SharedBytes() : SharedBytes{*copy, copy};
}

std::string NodeArrays::remark() {
  if (!node_ || maximum(ranks_, obstacle_.empty() ? 0 : 1) == 0) return {};
  const std::vector<std::string> obstacles = gather(ranks_, is_leader() ? obstacle_ : std::string());
  const auto is_set = [](const std::string& obstacle) { return !obstacle.empty(); };
  return fmt::format("on {} of {}, ranks cannot share memory, so each has a copy of the data: {}",
                     std::ranges::count_if(obstacles, is_set), count_of(ranks_.node_map().nodes(), "node"),
                     *std::ranges::find_if(obstacles, is_set));
}

}  // namespace mylos::parallel
