#include "parallel/communicator/value_broadcast.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/node_arrays.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

}  // namespace mylos::parallel
