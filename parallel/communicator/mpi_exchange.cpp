#include "parallel/communicator/mpi_exchange.hpp"

#include "parallel/communicator/rank_sum.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace mylos::parallel {
namespace {

using Progress = QueuedOperation::Progress;

constexpr std::align_val_t alignment{64};

/// The rank that is `step` after this one, and before it: in each step every rank sends to one and receives from one.
std::size_t rank_after(const MpiGroup& group, std::size_t step) { return (group.rank + step) % group.size; }
std::size_t rank_before(const MpiGroup& group, std::size_t step) {
  return (group.rank + group.size - step) % group.size;
}

}  // namespace

Parts::Piece Parts::piece(std::size_t rank, std::size_t index, std::size_t piece) const {
  const std::size_t part_end = std::min(count, (rank + 1) * part);
  const std::size_t begin = std::min(part_end, rank * part + index * piece);
  return {begin, std::min(piece, part_end - begin)};
}

std::size_t Parts::pieces(std::size_t piece) const { return (part + piece - 1) / piece; }

Parts divide(std::size_t count, std::size_t ranks) { return {count, (count + ranks - 1) / ranks}; }

void ExchangeMemory::Release::operator()(std::byte* memory) const { ::operator delete[](memory, alignment); }

std::byte* ExchangeMemory::reserve(std::size_t bytes) {
  if (bytes_ < bytes) {
    memory_.reset();
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(::operator new[](bytes, alignment)));
    bytes_ = bytes;
  }
  return memory_.get();
}

ReduceScatterExchange::ReduceScatterExchange(const MpiGroup& group, ExchangeMemory& memory, const Arrays& arrays)
    : group_(group),
      memory_(memory),
      arrays_(arrays),
      element_(bytes_of(arrays.type)),
      piece_(
          std::min(message_bytes(group.size, memory.bucket()) / element_, std::max<std::size_t>(arrays.parts.part, 1))),
      pieces_(arrays.parts.pieces(piece_)) {}

std::byte* ReduceScatterExchange::received(std::size_t piece, std::size_t from) const {
  const std::size_t slot = piece % 2, place = from < group_.rank ? from : from - 1;
  return memory_begin_ + (slot * (group_.size - 1) + place) * piece_ * element_;
}

void ReduceScatterExchange::begin_piece() {
  MpiMessages& messages = messages_[begun_ % 2];
  const std::size_t mine = arrays_.parts.piece(group_.rank, begun_, piece_).size * element_;
  for (std::size_t step = 1; step < group_.size; ++step) {
    const std::size_t from = rank_before(group_, step);
    messages.receive(group_, from, received(begun_, from), mine);
  }
  for (std::size_t step = 1; step < group_.size; ++step) {
    const std::size_t to = rank_after(group_, step);
    const Parts::Piece piece = arrays_.parts.piece(to, begun_, piece_);
    messages.send(group_, to, arrays_.all + piece.begin * element_, piece.size * element_);
  }
  ++begun_;
}

void ReduceScatterExchange::sum_piece() {
  const Parts::Piece piece = arrays_.parts.piece(group_.rank, summed_, piece_);
  std::vector<const void*> parts(group_.size);
  for (std::size_t rank = 0; rank < group_.size; ++rank) {
    parts[rank] = rank == group_.rank ? arrays_.all + piece.begin * element_ : received(summed_, rank);
  }
  std::byte* const sums = arrays_.mine + summed_ * piece_ * bytes_of(arrays_.sum_type);
  sum_over_ranks(arrays_.type, parts, piece.size, arrays_.sum_type, sums);
  ++summed_;
}

Progress ReduceScatterExchange::advance() {
  if (summed_ == pieces_) return Progress::done;
  if (memory_begin_ == nullptr) memory_begin_ = memory_.reserve(2 * (group_.size - 1) * piece_ * element_);
  while (begun_ < std::min(pieces_, summed_ + 2)) begin_piece();
  if (!messages_[summed_ % 2].done()) return Progress::waiting;
  sum_piece();
  return summed_ == pieces_ ? Progress::done : Progress::moved;
}

AllGatherExchange::AllGatherExchange(const MpiGroup& group, std::size_t bucket, const Parts& bytes,
                                     const std::byte* mine, std::byte* all)
    : group_(group),
      bytes_(bytes),
      mine_(mine),
      all_(all),
      piece_(message_bytes(group.size, bucket)),
      pieces_(bytes.pieces(piece_)) {}

void AllGatherExchange::begin_piece() {
  MpiMessages& messages = messages_[begun_ % 2];
  for (std::size_t step = 1; step < group_.size; ++step) {
    const std::size_t from = rank_before(group_, step);
    const Parts::Piece piece = bytes_.piece(from, begun_, piece_);
    messages.receive(group_, from, all_ + piece.begin, piece.size);
  }
  const Parts::Piece piece = bytes_.piece(group_.rank, begun_, piece_);
  const std::byte* const source = mine_ + begun_ * piece_;
  for (std::size_t step = 1; step < group_.size; ++step) {
    messages.send(group_, rank_after(group_, step), source, piece.size);
  }
  if (piece.size > 0 && source != all_ + piece.begin) std::memcpy(all_ + piece.begin, source, piece.size);
  ++begun_;
}

Progress AllGatherExchange::advance() {
  if (ended_ == pieces_) return Progress::done;
  while (begun_ < std::min(pieces_, ended_ + 2)) begin_piece();
  if (!messages_[ended_ % 2].done()) return Progress::waiting;
  ++ended_;
  return ended_ == pieces_ ? Progress::done : Progress::moved;
}

}  // namespace mylos::parallel
