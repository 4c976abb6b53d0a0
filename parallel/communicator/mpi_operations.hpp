#pragma once

#include "parallel/communicator/host_image.hpp"
#include "parallel/communicator/mpi_communicator.hpp"

#include <cstdint>
#include <memory>

/// The operations of a communicator over MPI, as the communication thread carries them out.
namespace mylos::parallel {

/// An operation whose result is in one image.
class MpiOperation : public QueuedOperation {
 public:
  MpiOperation(OperationName name, const MpiGroup& group, HostImage result)
      : QueuedOperation(std::move(name)), group_(group), result_(std::move(result)) {}

  /// Lets whoever waits for `self`, which is this one, see the results of all operations before it.
  void follow(const std::shared_ptr<PendingResults>& results, const std::shared_ptr<MpiOperation>& self);
  void wait(const ExecutionSpace& space) override;
  void wait_for_its_end() noexcept override;

 protected:
  void write_back(const ExecutionSpace& space) override { result_.write_back(space); }
  const MpiGroup& group() const { return group_; }
  std::byte* result() const { return result_.data(); }

 private:
  MpiGroup group_;
  HostImage result_;
  std::weak_ptr<PendingResults> results_;
  std::uint64_t last_result_ = 0;  ///< of `results_`, counted from 1: this one's, or the one before
};

/// An array that is cut into parts: each rank sums its own, then all gather them.
class LongAllReduce final : public MpiOperation {
 public:
  LongAllReduce(OperationName name, const MpiGroup& group, ExchangeMemory& memory, ElementType type, std::size_t count,
                HostImage data);
  Progress advance() override;

 private:
  ReduceScatterExchange sum_;
  AllGatherExchange gather_;
  bool summed_ = false;
};

/// A short array: all gather all of them, and each rank sums.
class ShortAllReduce final : public MpiOperation {
 public:
  ShortAllReduce(OperationName name, const MpiGroup& group, ExchangeMemory& memory, ElementType type, std::size_t count,
                 HostImage data);
  /// Whether arrays of `bytes` are short.
  static bool suits(std::size_t bytes);
  Progress advance() override;

 private:
  void sum();

  ExchangeMemory& memory_;
  ElementType type_;
  std::size_t count_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::byte* gathered_ = nullptr;
};

class ReduceScatter final : public MpiOperation {
 public:
  ReduceScatter(OperationName name, const MpiGroup& group, ExchangeMemory& memory, const Buffer& all_buffer,
                HostImage all, const Buffer& mine_buffer, HostImage mine);
  Progress advance() override { return sum_.advance(); }

 private:
  HostImage all_;
  ReduceScatterExchange sum_;
};

class LongAllGather final : public MpiOperation {
 public:
  LongAllGather(OperationName name, const MpiGroup& group, std::size_t bucket, std::size_t part_bytes, HostImage mine,
                HostImage all);
  Progress advance() override { return gather_.advance(); }

 private:
  HostImage mine_;
  AllGatherExchange gather_;
};

class ShortAllGather final : public MpiOperation {
 public:
  ShortAllGather(OperationName name, const MpiGroup& group, std::size_t part_bytes, HostImage mine, HostImage all);
  static bool suits(std::size_t part_bytes);
  Progress advance() override;

 private:
  HostImage mine_;
  std::size_t part_bytes_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class Broadcast final : public MpiOperation {
 public:
  Broadcast(OperationName name, const MpiGroup& group, std::size_t root, std::size_t bytes, HostImage data);
  Progress advance() override;

 private:
  std::size_t root_, bytes_, begun_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// Between two ranks, in pieces; the others do not take part.
class Transfer final : public MpiOperation {
 public:
  Transfer(OperationName name, const MpiGroup& group, std::size_t from, std::size_t to, std::size_t bytes,
           HostImage data);
  Progress advance() override;

 private:
  std::size_t from_, to_, bytes_, begun_ = 0;
  MpiMessages messages_;
};

class Barrier : public QueuedOperation {
 public:
  Barrier(OperationName name, const MpiGroup& group) : QueuedOperation(std::move(name)), group_(group) {}
  Progress advance() override;

 protected:
  const MpiGroup& group() const { return group_; }

 private:
  MpiGroup group_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// A barrier, so that the call which makes the groups, and blocks, finds all ranks there.
class Split final : public Barrier {
 public:
  Split(OperationName name, const MpiGroup& group, int color, int key)
      : Barrier(std::move(name), group), color_(color), key_(key) {}
  Progress advance() override;
  const MpiGroup& made() const { return made_; }

 private:
  int color_, key_;
  MpiGroup made_;
};

}  // namespace mylos::parallel
