#pragma once

#include "parallel/communicator/communication_thread.hpp"
#include "parallel/communicator/mpi_messages.hpp"

#include <array>
#include <cstddef>
#include <memory>

/// How ranks exchange long arrays: in pieces that each rank sends straight to each other, two pieces under way at a
/// time.
namespace mylos::parallel {

/// An array in parts of equal size, one for each rank; the last ones are shorter where the size is not divided.
struct Parts {
  std::size_t count = 0;  ///< elements of the whole
  std::size_t part = 0;   ///< elements of a part that is not cut short

  /// Elements of piece `index` of part `rank`, `piece` elements a piece: where it begins in the whole, and its size.
  struct Piece {
    std::size_t begin = 0, size = 0;
  };
  Piece piece(std::size_t rank, std::size_t index, std::size_t piece) const;
  std::size_t pieces(std::size_t piece) const;
};
Parts divide(std::size_t count, std::size_t ranks);

/// Memory for what other ranks send, kept from one operation to the next; not a View, because it outlives Kokkos.
class ExchangeMemory {
 public:
  /// At least `bytes`, aligned for vectors; what it held is lost where it has to grow.
  std::byte* reserve(std::size_t bytes);

  /// See Communicator::set_bucket. Of the thread that submits.
  void set_bucket(std::size_t bytes) { bucket_ = bytes; }
  std::size_t bucket() const { return bucket_; }

 private:
  struct Release {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::size_t bytes_ = 0;
  std::size_t bucket_ = default_bucket;
};

/// Each rank's part of `mine` becomes the sum over ranks of that part of `all`.
class ReduceScatterExchange {
 public:
  struct Arrays {
    ElementType type;
    const std::byte* all;
    Parts parts;
    ElementType sum_type;
    std::byte* mine;
  };
  ReduceScatterExchange(const MpiGroup& group, ExchangeMemory& memory, const Arrays& arrays);
  QueuedOperation::Progress advance();

 private:
  std::byte* received(std::size_t piece, std::size_t from) const;
  void begin_piece();
  void sum_piece();

  const MpiGroup& group_;
  ExchangeMemory& memory_;
  Arrays arrays_;
  std::size_t element_;  ///< bytes
  std::size_t piece_;    ///< elements
  std::size_t pieces_, begun_ = 0, summed_ = 0;
  std::byte* memory_begin_ = nullptr;
  std::array<MpiMessages, 2> messages_;
};

/// Each rank's part of `all`, copied from `mine` where it is not there already, comes to all ranks.
class AllGatherExchange {
 public:
  /// `bytes`: the parts in bytes.
  AllGatherExchange(const MpiGroup& group, std::size_t bucket, const Parts& bytes, const std::byte* mine,
                    std::byte* all);
  QueuedOperation::Progress advance();

 private:
  void begin_piece();

  const MpiGroup& group_;
  Parts bytes_;
  const std::byte* mine_;
  std::byte* all_;
  std::size_t piece_;  ///< bytes
  std::size_t pieces_, begun_ = 0, ended_ = 0;
  std::array<MpiMessages, 2> messages_;
};

}  // namespace mylos::parallel
