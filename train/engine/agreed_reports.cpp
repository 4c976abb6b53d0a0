#include "train/engine/agreed_reports.hpp"

#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"

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

int AgreedReports::agree(int signal) {
  const std::int64_t most = parallel::maximum(ranks_, failure_ ? failed : signal);
  if (most == failed) {
    parallel::on_every_rank(ranks_, [this] {
      if (failure_) std::rethrow_exception(failure_);
    });
  }
  return static_cast<int>(most);
}

}  // namespace mylos::train
