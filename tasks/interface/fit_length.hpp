#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"

#include <cstddef>
#include <string>

namespace mylos::tasks {

/// Limits --max-length to the `positions` of the model that the user called `name`. The default is shortened with a
/// line to `notice`, as in run_qa. Errors: UsageError if the user gave a longer length.
void fit_max_length(std::size_t& length, std::size_t positions, const std::string& name, const OptionSources& sources,
                    const Notice& notice);

}  // namespace mylos::tasks
