#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"

#include <cstddef>
#include <string>

namespace mylos::tasks {

/// Fits --max-length to the `positions` of the model that the user called `name`. The default is shortened, as run_qa
/// does, and `notice` gets a line. Errors: UsageError where a length that was given is longer.
void fit_max_length(std::size_t& length, std::size_t positions, const std::string& name, const OptionSources& sources,
                    const Notice& notice);

}  // namespace mylos::tasks
