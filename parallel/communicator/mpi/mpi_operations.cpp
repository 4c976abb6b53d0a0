#include "parallel/communicator/mpi/mpi_operations.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

using Progress = QueuedOperation::Progress;

/// Maximum size of a message in a transfer.
constexpr std::size_t transfer_bytes = std::size_t{4} << 20;

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
  if (!failed()) release_images();  // messages of a failed operation may still arrive
}

void MpiOperation::write_back(const ExecutionSpace& space) {
  result_.write_back(space);
  release_images();
}

MpiExchange::MpiExchange(OperationName name, const MpiGroup& group, RankGroup positions, ExchangeMemory& memory,
                         StagedArray input, StagedArray result, Make make)
    : MpiOperation(std::move(name), group, std::move(result)),
      positions_(std::move(positions)),
      transport_(group, *positions_.nodes, memory),
      input_(std::move(input)),
      make_(std::move(make)) {}

Progress MpiExchange::advance() {
  if (!exchange_) exchange_ = make_(transport_, positions_, input_.data(), result());
  return exchange_->advance();
}

Transfer::Transfer(OperationName name, const MpiGroup& group, std::size_t from, std::size_t to, std::size_t bytes,
                   StagedArray data)
    : MpiOperation(std::move(name), group, std::move(data)), from_(from), to_(to), bytes_(bytes) {}

Progress Transfer::advance() {
  if (!messages_->done()) return Progress::waiting;
  if (begun_ == bytes_) return Progress::done;
  const std::size_t piece = std::min(transfer_bytes, bytes_ - begun_);
  if (group().rank == from_) {
    messages_->send(group(), to_, result() + begun_, piece);
  } else {
    messages_->receive(group(), from_, result() + begun_, piece);
  }
  begun_ += piece;
  return Progress::moved;
}

Progress Barrier::advance() {
  static constexpr std::byte sent{};
  static std::byte received{};  // its value does not matter; it outlives messages that are given up
  if (!messages_->done()) return Progress::waiting;
  if (distance_ >= group_.size) return Progress::done;
  messages_->send(group_, (group_.rank + distance_) % group_.size, &sent, 1);
  messages_->receive(group_, (group_.rank + group_.size - distance_) % group_.size, &received, 1);
  distance_ *= 2;
  return Progress::moved;
}

void AfterOthers::wait(const ExecutionSpace& space) {
  if (last_) last_->wait(space);
  if (const auto results = results_.lock()) results->write_back(last_result_, space);
}

}  // namespace mylos::parallel
