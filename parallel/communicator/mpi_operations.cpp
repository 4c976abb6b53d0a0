#include "parallel/communicator/mpi_operations.hpp"

#include "parallel/communicator/mpi_check.hpp"
#include "parallel/communicator/rank_sum.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace mylos::parallel {
namespace {

using Progress = QueuedOperation::Progress;

/// Up to here an array's time is that of messages, not of bytes.
constexpr std::size_t short_bytes = std::size_t{64} << 10;

/// What is broadcast or transferred at a time.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

Parts in_bytes(const Parts& elements, ElementType type) {
  return {elements.count * bytes_of(type), elements.part * bytes_of(type)};
}

bool has_ended(MPI_Request& request) {
  int done = 0;
  MYLOS_CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  return done != 0;
}

ReduceScatterExchange::Arrays sum_in_place(const MpiGroup& group, ElementType type, std::size_t count,
                                           std::byte* data) {
  const Parts parts = divide(count, group.size);
  const std::size_t mine = parts.piece(group.rank, 0, parts.part).begin;
  return {type, data, parts, type, data + mine * bytes_of(type)};
}

AllGatherExchange gather_in_place(const MpiGroup& group, std::size_t bucket, ElementType type, std::size_t count,
                                  std::byte* data) {
  const Parts bytes = in_bytes(divide(count, group.size), type);
  return {group, bucket, bytes, data + bytes.piece(group.rank, 0, bytes.part).begin, data};
}

}  // namespace

void MpiOperation::follow(const std::shared_ptr<PendingResults>& results, const std::shared_ptr<MpiOperation>& self) {
  results_ = results;
  if (result_.is_copy()) results->add(self, result_.buffer());
  last_result_ = results->added();
}

void MpiOperation::wait(const ExecutionSpace& space) {
  if (const auto results = results_.lock()) results->write_back(last_result_, space);
  take_result(space);
}

void MpiOperation::wait_for_its_end() noexcept {
  QueuedOperation::wait_for_its_end();
  if (const auto results = results_.lock()) results->drop(*this);
}

LongAllReduce::LongAllReduce(OperationName name, const MpiGroup& group, ExchangeMemory& memory, ElementType type,
                             std::size_t count, HostImage data)
    : MpiOperation(std::move(name), group, std::move(data)),
      sum_(this->group(), memory, sum_in_place(group, type, count, result())),
      gather_(gather_in_place(this->group(), memory.bucket(), type, count, result())) {}

Progress LongAllReduce::advance() {
  if (group().size == 1) return Progress::done;
  if (summed_) return gather_.advance();
  const Progress progress = sum_.advance();
  summed_ = progress == Progress::done;
  return progress == Progress::waiting ? Progress::waiting : Progress::moved;
}

ShortAllReduce::ShortAllReduce(OperationName name, const MpiGroup& group, ExchangeMemory& memory, ElementType type,
                               std::size_t count, HostImage data)
    : MpiOperation(std::move(name), group, std::move(data)), memory_(memory), type_(type), count_(count) {}

bool ShortAllReduce::suits(std::size_t bytes) { return bytes <= short_bytes; }

Progress ShortAllReduce::advance() {
  const std::size_t bytes = count_ * bytes_of(type_);
  if (bytes == 0 || group().size == 1) return Progress::done;
  if (gathered_ == nullptr) {
    gathered_ = memory_.reserve(bytes * group().size);
    const int count = static_cast<int>(bytes);
    MYLOS_CHECK_MPI(MPI_Iallgather(result(), count, MPI_BYTE, gathered_, count, MPI_BYTE, group().ranks, &request_));
    count_sent(bytes * (group().size - 1));
  }
  if (!has_ended(request_)) return Progress::waiting;
  sum();
  return Progress::done;
}

void ShortAllReduce::sum() {
  std::vector<const void*> parts(group().size);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) parts[rank] = gathered_ + rank * count_ * bytes_of(type_);
  sum_over_ranks(type_, parts, count_, type_, result());
}

ReduceScatter::ReduceScatter(OperationName name, const MpiGroup& group, ExchangeMemory& memory,
                             const Buffer& all_buffer, HostImage all, const Buffer& mine_buffer, HostImage mine)
    : MpiOperation(std::move(name), group, std::move(mine)),
      all_(std::move(all)),
      sum_(this->group(), memory,
           {all_buffer.type, all_.data(), divide(all_buffer.count, group.size), mine_buffer.type, result()}) {}

LongAllGather::LongAllGather(OperationName name, const MpiGroup& group, std::size_t bucket, std::size_t part_bytes,
                             HostImage mine, HostImage all)
    : MpiOperation(std::move(name), group, std::move(all)),
      mine_(std::move(mine)),
      gather_(this->group(), bucket, {part_bytes * group.size, part_bytes}, mine_.data(), result()) {}

ShortAllGather::ShortAllGather(OperationName name, const MpiGroup& group, std::size_t part_bytes, HostImage mine,
                               HostImage all)
    : MpiOperation(std::move(name), group, std::move(all)), mine_(std::move(mine)), part_bytes_(part_bytes) {}

bool ShortAllGather::suits(std::size_t part_bytes) { return part_bytes <= short_bytes; }

Progress ShortAllGather::advance() {
  if (part_bytes_ == 0) return Progress::done;
  if (request_ == MPI_REQUEST_NULL) {
    std::byte* const own = result() + group().rank * part_bytes_;
    if (own != mine_.data()) std::memcpy(own, mine_.data(), part_bytes_);
    MYLOS_CHECK_MPI(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, result(), static_cast<int>(part_bytes_), MPI_BYTE,
                                   group().ranks, &request_));
    count_sent(part_bytes_ * (group().size - 1));
  }
  return has_ended(request_) ? Progress::done : Progress::waiting;
}

Broadcast::Broadcast(OperationName name, const MpiGroup& group, std::size_t root, std::size_t bytes, HostImage data)
    : MpiOperation(std::move(name), group, std::move(data)), root_(root), bytes_(bytes) {}

Progress Broadcast::advance() {
  if (request_ == MPI_REQUEST_NULL) {
    if (begun_ == bytes_) return Progress::done;
    const std::size_t piece = std::min(piece_bytes, bytes_ - begun_);
    MYLOS_CHECK_MPI(MPI_Ibcast(result() + begun_, static_cast<int>(piece), MPI_BYTE, static_cast<int>(root_),
                               group().ranks, &request_));
    if (group().rank == root_) count_sent(piece * (group().size - 1));
    begun_ += piece;
  }
  if (!has_ended(request_)) return Progress::waiting;
  return begun_ == bytes_ ? Progress::done : Progress::moved;
}

Transfer::Transfer(OperationName name, const MpiGroup& group, std::size_t from, std::size_t to, std::size_t bytes,
                   HostImage data)
    : MpiOperation(std::move(name), group, std::move(data)), from_(from), to_(to), bytes_(bytes) {}

Progress Transfer::advance() {
  if (!messages_.done()) return Progress::waiting;
  if (begun_ == bytes_) return Progress::done;
  const std::size_t piece = std::min(piece_bytes, bytes_ - begun_);
  if (group().rank == from_) {
    messages_.send(group(), to_, result() + begun_, piece);
  } else {
    messages_.receive(group(), from_, result() + begun_, piece);
  }
  begun_ += piece;
  return Progress::moved;
}

Progress Barrier::advance() {
  if (request_ == MPI_REQUEST_NULL) MYLOS_CHECK_MPI(MPI_Ibarrier(group_.ranks, &request_));
  return has_ended(request_) ? Progress::done : Progress::waiting;
}

Progress Split::advance() {
  const Progress progress = Barrier::advance();
  if (progress != Progress::done) return progress;
  MPI_Comm made = MPI_COMM_NULL;
  MYLOS_CHECK_MPI(MPI_Comm_split(group().ranks, color_, key_, &made));
  made_ = make_mpi_group(made);
  return progress;
}

}  // namespace mylos::parallel
