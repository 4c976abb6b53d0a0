#include "app/runs/run_output.hpp"

#include "core/base/error.hpp"
#include "core/base/option_values.hpp"
#include "parallel/communicator/agreement.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

constexpr char separator = '\0';  // which no path holds

std::string to_text(const train::OutputStart& start) {
  std::string text = fmt::format("{:d}{}{:d}{}{}{}{}", start.finished, separator, start.goes_on, separator,
                                 start.checkpoint.string(), separator, start.remark);
  for (const std::string& each : start.differing) text += separator + each;
  return text;
}

train::OutputStart to_start(const std::string& text) {
  const std::vector<std::string> parts = split(text, separator);
  require(parts.size() >= 4, "agreed_start: the first rank's answer is cut short");
  return {.finished = parts[0] == "1",
          .differing = {parts.begin() + 4, parts.end()},
          .goes_on = parts[1] == "1",
          .checkpoint = parts[2],
          .remark = parts[3]};
}

}  // namespace

train::OutputStart agreed_start(parallel::Communicator& ranks, const std::function<train::OutputStart()>& decide) {
  return to_start(parallel::on_first_rank(ranks, [&] { return to_text(decide()); }));
}

RunOutput::RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules)
    : ranks_(ranks) {
  start_ = agreed_start(ranks, [&] {
    directory_.emplace(path, rules);
    return directory_->start();
  });
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
