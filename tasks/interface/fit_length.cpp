#include "tasks/interface/fit_length.hpp"

#include "core/base/usage_error.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

void fit_max_length(std::size_t& length, std::size_t positions, const std::string& name, const OptionSources& sources,
                    const Notice& notice) {
  if (length <= positions) return;
  // Never change a value given by the user.
  if (sources.was_given("max-length")) {
    throw UsageError(
        fmt::format("--max-length {}: expected at most {}, the positions that {} has", length, positions, name));
  }
  notice(fmt::format("{} has {} positions: --max-length is {}", name, positions, positions));
  length = positions;
}

}  // namespace mylos::tasks
