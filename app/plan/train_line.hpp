#pragma once

#include "app/options/arguments.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

/// Builds command lines that start a planned or measured run, as a user would type them.
namespace mylos::app {

/// Name and value of an option; switches have no value.
using TrainOption = std::pair<std::string, std::string>;

/// Returns the options of train that printed commands show, and those among `names`, that have a value in `arguments`,
/// in table order, without switches that are off.
std::vector<TrainOption> train_options(const Arguments& arguments, const std::set<std::string, std::less<>>& names);

/// Returns " --name value", quoted for a shell.
std::string typed_words(const TrainOption& option);

/// Returns the absolute path of --data; empty if not given.
std::string data_path(const Arguments& arguments);

/// Returns "srun ... mylos train --train FILE --output run" with `options`, for the machine of --gpu, --gpus and
/// --nodes. Without --data, `data_options` name the data: "--dataset NAME".
std::string launched_line(const Arguments& arguments, const std::string& data_options,
                          const std::vector<TrainOption>& options);

}  // namespace mylos::app
