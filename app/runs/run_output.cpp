#include "app/runs/run_output.hpp"

#include "parallel/communicator/agreement.hpp"

#include <fmt/format.h>

#include <exception>

namespace mylos::app {

train::OutputStart agreed_start(parallel::Communicator& ranks, const std::function<train::OutputStart()>& decide) {
  return parallel::on_first_rank(ranks, decide);
}

RunOutput::RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules)
    : ranks_(ranks) {
  start_ = agreed_start(ranks, [&] {
    directory_.emplace(path, rules);
    return directory_->start();
  });
}

void RunOutput::use(const std::function<void(train::OutputDirectory&)>& use) {
  parallel::on_first_rank(ranks_, [&] { use(*directory_); });
}

void RunOutput::report_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    try {
      if (directory_) directory_->end(fmt::format("failed: {}", error.what()));
    } catch (const std::exception&) {  // the first error is the one to report
    }
    throw;
  }
}

}  // namespace mylos::app
