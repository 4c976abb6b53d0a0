#include "parallel/communicator/trial.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace mylos::parallel {

using Clock = std::chrono::steady_clock;

Trial::Trial(std::chrono::duration<double> limit)
    : limit_(limit), deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)) {}

void Trial::expect_no_failure() const {
  if (has_failed()) std::rethrow_exception(error_);
}

void Trial::fail(std::exception_ptr error) {
  if (has_failed()) return;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_release);
}

TriedOperation::TriedOperation(std::shared_ptr<QueuedOperation> operation, std::shared_ptr<Trial> trial)
    : QueuedOperation(operation->name()), operation_(std::move(operation)), trial_(std::move(trial)) {}

QueuedOperation::Progress TriedOperation::advance() {
  if (!trial_->has_failed()) {
    try {
      const Progress progress = operation_->advance();
      if (progress == Progress::done || Clock::now() <= trial_->deadline_) return progress;
      trial_->fail(std::make_exception_ptr(TrialTimeout(
          fmt::format("{}: not finished {:.3g} s after the trial began", name().what, trial_->limit_.count()))));
    } catch (const std::exception& error) {
      trial_->fail(std::make_exception_ptr(std::runtime_error(name().what + ": " + error.what())));
    }
  }
  if (!std::exchange(stopping_, true)) {
    stopping_since_ = Clock::now();
    operation_->stop();
  }
  if (!operation_->has_stopped()) {
    if (Clock::now() - stopping_since_ > trial_->limit_) {
      throw std::runtime_error(fmt::format("stopped, but has not ended for {:.3g} s", trial_->limit_.count()));
    }
    return Progress::waiting;
  }
  operation_->give_up();
  return Progress::done;
}

void TriedOperation::finish(std::exception_ptr error) {
  operation_->finish(trial_->has_failed() ? trial_->error_ : error);
  QueuedOperation::finish(std::move(error));
}

}  // namespace mylos::parallel
