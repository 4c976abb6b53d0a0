#pragma once

#include "core/base/process/shared_memory.hpp"
#include "core/base/shared_array.hpp"
#include "core/base/value_bytes.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

/// Values that are too large for one message, such as a data set, sent from one rank to all.
namespace mylos::parallel {

/// Passes arrays of the first rank on to all ranks of a group. A node receives an array once, into memory that its
/// ranks share. If the ranks of a node cannot share memory, each of them receives a copy.
class NodeArrays {
 public:
  /// Arrays are sent in pieces of `piece` bytes. `ranks` must outlive this object. Not collective.
  NodeArrays(Communicator& ranks, std::size_t piece) : ranks_(ranks), piece_(piece) {}

  /// Returns the array of `bytes` bytes, at least one, in memory of this node. The first rank passes it as `array`; the
  /// other ranks pass an empty one. Returns an empty result on a first rank that shares no memory; its `array` stays in
  /// use. Collective. Errors: those of the operations; too little memory for a copy, on that rank only.
  SharedBytes pass_on(std::span<const std::byte> array, std::size_t bytes);

  /// Returns one line that says where ranks have copies and why, the same on all ranks; empty if none have. Collective.
  std::string remark();

 private:
  void form_groups();
  bool is_leader() const;
  /// Returns memory of `bytes` bytes that the node's ranks share, or null on all of them. Collective on the node.
  std::shared_ptr<SharedMemory> share(std::size_t bytes);

  Communicator& ranks_;
  std::size_t piece_;
  std::unique_ptr<Communicator> node_;     ///< the ranks of this node; null until the first array
  std::unique_ptr<Communicator> leaders_;  ///< the lowest rank of each node; on other ranks unused
  std::string obstacle_;                   ///< why the ranks of this node cannot share memory
};

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
