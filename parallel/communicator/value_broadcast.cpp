#include "parallel/communicator/value_broadcast.hpp"

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/node_map.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace mylos::parallel {
namespace {

/// Announces what the first rank sends next: a piece of bytes, an array, or the end.
struct Announcement {
  std::uint64_t bytes = 0;  ///< 0: the end
  std::uint64_t is_array = 0;
};

/// Replaces `values` with those of the first rank.
template <class Value>
void broadcast_values_in_place(Communicator& ranks, std::span<Value> values) {
  broadcast_in_place(ranks, std::as_writable_bytes(values), "values of the first rank");
}

void announce(Communicator& ranks, Announcement announcement) {
  broadcast_values_in_place(ranks, std::span(&announcement, 1));
}

void write_values(Communicator& ranks, const std::function<void(ByteWriter&)>& write, NodeArrays& arrays,
                  std::size_t piece) {
  const auto send = [&](std::string& bytes) {
    announce(ranks, {.bytes = bytes.size()});
    broadcast_values_in_place(ranks, std::span(bytes));
  };
  const auto send_array = [&](std::span<const std::byte> array) {
    announce(ranks, {.bytes = array.size(), .is_array = 1});
    return arrays.pass_on(array, array.size());
  };
  ByteWriter writer(piece, send, send_array);
  write(writer);
  writer.finish();
  announce(ranks, {});
}

/// Receives what write_values sends.
class Receiver {
 public:
  Receiver(Communicator& ranks, NodeArrays& arrays) : ranks_(ranks), arrays_(arrays) {}

  /// Returns the next piece, which is valid until the next call; an empty one if an array or the end is next.
  std::string_view piece() {
    look_ahead();
    if (next_.bytes == 0 || next_.is_array != 0) return {};
    piece_.resize(next_.bytes);
    broadcast_values_in_place(ranks_, std::span(piece_));
    is_ahead_ = false;
    return piece_;
  }

  SharedBytes array(std::size_t bytes) {
    look_ahead();
    require(next_.is_array != 0 && next_.bytes == bytes, "broadcast_values: the first rank sends no such array");
    is_ahead_ = false;
    return arrays_.pass_on({}, bytes);
  }

  /// Receives the rest, because the other ranks wait until this one has. Returns whether there is any.
  bool drain() {
    bool is_left = false;
    for (look_ahead(); next_.bytes > 0; look_ahead()) {
      is_left = true;
      if (next_.is_array != 0) {
        array(next_.bytes);
      } else {
        piece();
      }
    }
    return is_left;
  }

 private:
  /// Receives the next announcement, unless it is known. The end stays the next one.
  void look_ahead() {
    if (is_ahead_) return;
    broadcast_values_in_place(ranks_, std::span(&next_, 1));
    is_ahead_ = true;
  }

  Communicator& ranks_;
  NodeArrays& arrays_;
  Announcement next_;
  bool is_ahead_ = false;  ///< `next_` is received, but not what it announces
  std::string piece_;
};

/// Returns whether values of the first rank are left.
bool read_values(Communicator& ranks, const std::function<void(ByteReader&)>& read, NodeArrays& arrays) {
  Receiver receiver(ranks, arrays);
  const auto next_piece = [&] { return receiver.piece(); };
  const auto next_array = [&](std::size_t bytes) { return receiver.array(bytes); };
  ByteReader reader(next_piece, next_array);
  read(reader);
  const bool is_rest = receiver.drain();
  return is_rest || !reader.at_end();
}

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

std::string broadcast_values(Communicator& ranks, const std::function<void(ByteWriter&)>& write,
                             const std::function<void(ByteReader&)>& read, std::size_t piece) {
  if (ranks.size() == 1) return {};
  NodeArrays arrays(ranks, piece);
  bool is_left = false;
  if (ranks.rank() == 0) {
    write_values(ranks, write, arrays, piece);
  } else {
    is_left = read_values(ranks, read, arrays);
  }
  const std::string remark = arrays.remark();
  require(!is_left, "broadcast_values: values of the first rank are left");
  return remark;
}

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
