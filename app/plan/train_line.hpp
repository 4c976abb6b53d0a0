#pragma once

#include "app/options/arguments.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

/// Lines that start a planned or measured run, as a user types them.
namespace mylos::app {

/// Name and value of an option; a switch has no value.
using TrainOption = std::pair<std::string, std::string>;

/// The options of train called one of `names` that have a value in `arguments`, in the order of the table. Switches
/// that are off are left out.
std::vector<TrainOption> train_options(const Arguments& arguments, const std::set<std::string, std::less<>>& names);

/// " --name value", quoted for a shell.
std::string typed_words(const TrainOption& option);

/// The absolute path of --data; empty where there is none.
std::string data_path(const Arguments& arguments);

/// "srun ... mylos train --train FILE --output run", with `options`, on the machine of --gpu, --gpus and --nodes. Where
/// there is no --data, `data_options` name it: "--dataset NAME".
std::string launched_line(const Arguments& arguments, const std::string& data_options,
                          const std::vector<TrainOption>& options);

}  // namespace mylos::app
