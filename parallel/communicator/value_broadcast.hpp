#pragma once

#include "core/base/value_bytes.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <functional>
#include <string>

/// Values that are too large for one message, such as a data set, sent from one rank to all.
namespace mylos::parallel {

/// Default size of a piece in broadcast_values, in bytes.
inline constexpr std::size_t broadcast_piece = std::size_t{16} << 20;

/// Rank 0 calls `write`, and every other rank calls `read`, which must read the same values in the same order. They are
/// sent in pieces of `piece` bytes. A rank needs memory for one piece in addition to the values. Large shared arrays
/// (least_array_apart) are held once a node, in memory that its ranks share, also those of rank 0 (see NodeArrays); the
/// first node holds one array twice for a moment. A single rank calls neither. Returns a line about nodes whose ranks
/// cannot share memory, the same on every rank; empty if there are none. Collective. Errors: those of `write` and
/// `read`, thrown on that rank only, so that the caller must end the program on all ranks; std::invalid_argument on a
/// rank that reads fewer or more values than rank 0 writes.
std::string broadcast_values(Communicator& ranks, const std::function<void(ByteWriter&)>& write,
                             const std::function<void(ByteReader&)>& read, std::size_t piece = broadcast_piece);

}  // namespace mylos::parallel
