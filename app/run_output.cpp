#include "app/run_output.hpp"

#include "parallel/agreement.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>

namespace mylos::app {
namespace {

constexpr const char* is_finished = "\n";  // which is no path

}  // namespace

RunOutput::RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules)
    : ranks_(ranks) {
  const std::string found = parallel::on_first_rank(ranks, [&] {
    directory_.emplace(path, rules);
    return directory_->finished() ? std::string(is_finished) : directory_->checkpoint().string();
  });
  finished_ = found == is_finished;
  if (!finished_) checkpoint_ = found;
}

void RunOutput::use(const std::function<void(train::OutputDirectory&)>& use) {
  parallel::on_first_rank(ranks_, [&] {
    use(*directory_);
    return std::string();
  });
}

void RunOutput::tell_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    try {
      if (directory_) directory_->end(fmt::format("failed: {}", error.what()));
    } catch (const std::exception&) {  // the first error is the one to tell
    }
    throw;
  }
}

}  // namespace mylos::app
