#pragma once

#include "parallel/communicator/communication_thread.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>

/// Operations that may fail or hang without ending the run, while the ranks find out whether a library works.
namespace mylos::parallel {

/// The error of an operation that does not end before the deadline; mostly because of an error of another rank.
class TrialTimeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A sequence of operations. If one fails, all later ones of the sequence fail, and no others.
class Trial {
 public:
  /// The operations fail unless they end within `limit` from now.
  explicit Trial(std::chrono::duration<double> limit);

  /// Throws the error of the operation that failed, if one has. Any thread may call it.
  void expect_no_failure() const;

 private:
  friend class TriedOperation;
  void fail(std::exception_ptr error);
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

  std::chrono::duration<double> limit_;
  std::chrono::steady_clock::time_point deadline_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};  ///< set after error_, which never changes afterwards
};

/// Runs an operation as part of a trial. If the operation fails, does not end before the deadline, or comes after one
/// that failed, it is stopped and its waiting threads throw the trial's error, while the communication thread goes on.
/// An operation that does not stop within the trial's limit fails as all others do.
class TriedOperation final : public QueuedOperation {
 public:
  TriedOperation(std::shared_ptr<QueuedOperation> operation, std::shared_ptr<Trial> trial);

  Progress advance() override;
  const void* stream() const override { return operation_->stream(); }
  bool uses_host_memory_only() const override { return operation_->uses_host_memory_only(); }
  void stop() noexcept override { operation_->stop(); }
  bool has_stopped() const noexcept override { return operation_->has_stopped(); }
  void give_up() noexcept override { operation_->give_up(); }
  void finish(std::exception_ptr error) override;

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<QueuedOperation> operation_;
  std::shared_ptr<Trial> trial_;
  bool stopping_ = false;
  Clock::time_point stopping_since_;
};

}  // namespace mylos::parallel
