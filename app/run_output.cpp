#include "app/run_output.hpp"

#include "parallel/agreement.hpp"

#include <string>

namespace mylos::app {

RunOutput::RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules)
    : ranks_(ranks) {
  const std::string found = parallel::on_first_rank(ranks, [&] {
    directory_.emplace(path, rules);
    return std::string(directory_->finished() ? "finished" : "begins");
  });
  finished_ = found == "finished";
}

void RunOutput::use(const std::function<void(train::OutputDirectory&)>& use) {
  parallel::on_first_rank(ranks_, [&] {
    use(*directory_);
    return std::string();
  });
}

}  // namespace mylos::app
