#include "train/engine/loop/agreed_reports.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/file_work.hpp"

#include <array>
#include <utility>

namespace mylos::train {
namespace {

constexpr std::int64_t failed = 1 << 16;  // no signal has such a number

}  // namespace

void AgreedReports::tell(const std::function<void(Reporter&)>& tell) {
  if (failure_) return;
  const parallel::FileWork writing;
  try {
    for (Reporter* reporter : reporters_) tell(*reporter);
  } catch (const std::exception&) {
    failure_ = std::current_exception();
  }
}

RankRequests AgreedReports::agree(const RankRequests& own) {
  begin_agreement(own);
  return end_agreement(own);
}

void AgreedReports::begin_agreement(const RankRequests& own) {
  require(!pending_, "agreed reports: the last agreement has not ended");
  pending_.emplace(ranks_, std::array{failure_ ? failed : std::int64_t{own.signal}, std::int64_t{own.checkpoint}});
}

void AgreedReports::wait_for_ranks() {
  require(pending_.has_value(), "agreed reports: no agreement has begun");
  most_ = pending_->wait();
}

RankRequests AgreedReports::end_agreement(const RankRequests& own) {
  if (ranks_.size() == 1) {
    pending_.reset();
    most_.clear();
    begin_agreement(own);
  }
  if (most_.empty()) wait_for_ranks();
  pending_.reset();
  const std::vector<std::int64_t> most = std::exchange(most_, {});
  if (most[0] == failed) {
    parallel::on_every_rank(ranks_, [this] {
      if (failure_) std::rethrow_exception(failure_);
    });
  }
  return {.signal = static_cast<int>(most[0]), .checkpoint = most[1] != 0};
}

}  // namespace mylos::train
