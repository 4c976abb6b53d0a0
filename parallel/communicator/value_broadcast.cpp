#include "parallel/communicator/value_broadcast.hpp"

#include "core/base/error.hpp"

#include <cstdint>
#include <string>

namespace mylos::parallel {
namespace {

void broadcast_bytes(Communicator& ranks, void* data, std::size_t bytes) {
  const ExecutionSpace space;
  const Buffer buffer{data, bytes, ElementType::byte, MemoryKind::host};
  ranks.broadcast(space, buffer, 0, "values of the first rank").wait(space);
}

/// Replaces `piece` with rank 0's.
void broadcast_piece(Communicator& ranks, std::string& piece) {
  std::uint64_t bytes = piece.size();
  broadcast_bytes(ranks, &bytes, sizeof bytes);
  piece.resize(bytes);
  if (bytes > 0) broadcast_bytes(ranks, piece.data(), piece.size());
}

/// The pieces follow each other, and an empty one ends them.
void write_pieces(Communicator& ranks, const std::function<void(ByteWriter&)>& write, std::size_t piece) {
  ByteWriter writer(piece, [&](std::string& bytes) { broadcast_piece(ranks, bytes); });
  write(writer);
  writer.finish();
  std::string end;
  broadcast_piece(ranks, end);
}

void read_pieces(Communicator& ranks, const std::function<void(ByteReader&)>& read) {
  std::string received;
  bool has_ended = false;
  const auto next = [&]() -> std::string_view {
    if (!has_ended) broadcast_piece(ranks, received);
    has_ended = received.empty();
    return received;
  };
  ByteReader reader(next);
  read(reader);
  bool is_left = !reader.at_end();
  while (!next().empty()) is_left = true;  // the other ranks wait until this one has received all pieces
  require(!is_left, "broadcast_values: values of the first rank are left");
}

}  // namespace

void broadcast_values(Communicator& ranks, const std::function<void(ByteWriter&)>& write,
                      const std::function<void(ByteReader&)>& read, std::size_t piece) {
  if (ranks.size() == 1) return;
  if (ranks.rank() == 0) {
    write_pieces(ranks, write, piece);
  } else {
    read_pieces(ranks, read);
  }
}

}  // namespace mylos::parallel
