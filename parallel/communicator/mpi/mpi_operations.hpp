#pragma once

#include "parallel/communicator/exchanges/exchanges.hpp"
#include "parallel/communicator/mpi/mpi_communicator.hpp"
#include "parallel/communicator/mpi/mpi_transport.hpp"
#include "parallel/communicator/staged_array.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// Operations over MPI, as the communication thread runs them.
namespace mylos::parallel {

/// An operation whose result is in one host image.
class MpiOperation : public QueuedOperation {
 public:
  MpiOperation(OperationName name, const MpiGroup& group, StagedArray result)
      : QueuedOperation(std::move(name)), group_(group), result_(std::move(result)) {}

  /// Makes waiting for `self`, a pointer to this operation, also bring back the results of all earlier operations.
  void follow(const std::shared_ptr<PendingResults>& results, const std::shared_ptr<MpiOperation>& self);
  void wait(const ExecutionSpace& space) override;
  void wait_for_its_end() noexcept override;
  bool uses_host_memory_only() const override { return true; }

 protected:
  void write_back(const ExecutionSpace& space) override;
  /// Gives the memory of images back after the operation, so that later operations can use it.
  virtual void release_images() { result_.release(); }
  const MpiGroup& group() const { return group_; }
  std::byte* result() const { return result_.data(); }

 private:
  MpiGroup group_;
  StagedArray result_;
  std::weak_ptr<PendingResults> results_;
  std::uint64_t last_result_ = 0;  ///< number of results in `results_` to write back, up to this operation
};

/// An exchange of exchanges.hpp, over MPI.
class MpiExchange final : public MpiOperation {
 public:
  /// Creates the exchange from the memory of its input, if it has a separate one, and of its result.
  using Make =
      std::function<std::unique_ptr<Exchange>(Transport&, const RankGroup&, std::byte* input, std::byte* result)>;
  MpiExchange(OperationName name, const MpiGroup& group, RankGroup positions, ExchangeMemory& memory, StagedArray input,
              StagedArray result, Make make);
  Progress advance() override;
  /// Cancels its messages, because the caller may free its arrays.
  void give_up() noexcept override { exchange_.reset(); }

 protected:
  void release_images() override {
    input_.release();
    MpiOperation::release_images();
  }

 private:
  RankGroup positions_;
  MpiTransport transport_;
  StagedArray input_;
  Make make_;
  std::unique_ptr<Exchange> exchange_;
};

/// A transfer between two ranks, in pieces; the other ranks do not take part.
class Transfer final : public MpiOperation {
 public:
  Transfer(OperationName name, const MpiGroup& group, std::size_t from, std::size_t to, std::size_t bytes,
           StagedArray data);
  Progress advance() override;
  void give_up() noexcept override { messages_.reset(); }

 private:
  std::size_t from_, to_, bytes_, begun_ = 0;
  std::optional<MpiMessages> messages_{std::in_place};
};

/// Waits until all ranks of a group have come to it, by messages between ranks at distances 1, 2, 4 ...
class Barrier final : public QueuedOperation {
 public:
  Barrier(OperationName name, const MpiGroup& group) : QueuedOperation(std::move(name)), group_(group) { ++group_.tag; }
  Progress advance() override;
  void give_up() noexcept override { messages_.reset(); }

 private:
  MpiGroup group_;
  std::size_t distance_ = 1;
  std::optional<MpiMessages> messages_{std::in_place, false};  // a barrier is no data
};

/// The event of an operation in a group of one: there is nothing to do except to wait for operations submitted before,
/// up to `last`, which is null if there is none.
class AfterOthers final : public Event::Operation {
 public:
  AfterOthers(std::shared_ptr<Event::Operation> last, const std::shared_ptr<PendingResults>& results)
      : last_(std::move(last)), results_(results), last_result_(results->added()) {}

  void wait(const ExecutionSpace& space) override;
  bool done() override { return !last_ || last_->done(); }
  void wait_for_its_end() noexcept override {}

 private:
  std::shared_ptr<Event::Operation> last_;
  std::weak_ptr<PendingResults> results_;
  std::uint64_t last_result_;
};

}  // namespace mylos::parallel
