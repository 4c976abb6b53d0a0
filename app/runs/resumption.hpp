#pragma once

#include "app/options/arguments.hpp"
#include "tasks/interface/task.hpp"
#include "train/monitor/output_start.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

/// How a run goes on from a checkpoint.
namespace mylos::app {

/// Compares the arguments with those of `saved`, a run.json: lists what a resumed run may not change. With --extend
/// its length is not among that.
train::CommandDifference difference_from_run(const nlohmann::ordered_json& saved, const Arguments& arguments);

/// The run that another one goes on with.
struct ResumedRun {
  nlohmann::ordered_json run;  ///< its run.json
  bool extends = false;        ///< --extend gives it another length
};

/// Compares what the run of a checkpoint was told, `configuration` (its run.json), with the arguments, and takes over
/// what it chose by itself. Ranks and what only decides how the same numbers are computed may differ; so may the names
/// of data files whose checksums are known, which check_resumed_data compares, and with --extend the length. Errors:
/// std::runtime_error that lists every other difference.
ResumedRun take_up_run(const std::string& configuration, const std::filesystem::path& checkpoint, Arguments& arguments);

/// Compares the data with what the run of `checkpoint`, whose run.json is `saved`, had read; a run.json without
/// checksums is of a version that did not note them. Errors: std::runtime_error that names the first file that holds
/// other data.
void check_resumed_data(const nlohmann::ordered_json& saved, const std::filesystem::path& checkpoint,
                        const std::vector<tasks::DataChecksum>& data);

/// A line where the run that goes on, whose run.json is `run`, sums in another order than it did before: on other
/// ranks, with another mode or micro-batch. Empty where it does not, where --deterministic makes that no difference,
/// and where `saved` does not say how it was.
std::string changed_layout_line(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& run);

}  // namespace mylos::app
