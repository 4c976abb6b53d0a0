#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/run_config.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

/// The models of runs and plans on texts.
namespace mylos::tasks {

/// Limits --max-length to the `positions` of the model that the user called `name`. The default is shortened with a
/// line to `notice`, as in run_qa. Errors: UsageError if the user gave a longer length.
void fit_max_length(std::size_t& length, std::size_t positions, const std::string& name, const OptionSources& sources,
                    const Notice& notice);

/// Returns the model called `name` of the family `type`, for a plan of `run` on `data`, and sets the model's directory
/// in `run`: its own or, for built-in sizes, that of the tokenizer that cuts the data; none if `data` is empty. Errors:
/// std::runtime_error if there is no such model, or if the one of this size has not been fetched.
families::NamedModel find_planned_model(RunConfig& run, const std::string& name, std::string_view type,
                                        const std::filesystem::path& data);

}  // namespace mylos::tasks
