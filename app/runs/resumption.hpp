#pragma once

#include "app/options/arguments.hpp"
#include "tasks/interface/task.hpp"
#include "train/monitor/output_start.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <filesystem>
#include <string>

/// Resumes a run from a checkpoint.
namespace mylos::app {

/// Compares the arguments with those of `saved`, a run.json, and lists the differences that a resumed run may not have;
/// for a finished run also those that its results would have. With --extend, the length may differ.
train::CommandDifference difference_from_run(const nlohmann::ordered_json& saved, const Arguments& arguments);

/// The run that is resumed.
struct ResumedRun {
  nlohmann::ordered_json run;  ///< its run.json
  bool extends = false;        ///< whether --extend changes its length
};

/// Compares the arguments with `configuration`, the run.json in a checkpoint, and takes over the choices that the run
/// made itself. The number of ranks and settings that only affect how the same numbers are computed may differ. So may
/// names of data files with known checksums, which check_resumed_data compares, and with --extend the length. Errors:
/// std::runtime_error listing every other difference.
ResumedRun take_up_run(const std::string& configuration, const std::filesystem::path& checkpoint, Arguments& arguments);

/// Compares the data with those that the run of `checkpoint` read; `saved` is its run.json. Without checksums, as in
/// older versions, nothing is compared. Errors: std::runtime_error naming the first file whose content differs.
void check_resumed_data(const nlohmann::ordered_json& saved, const std::filesystem::path& checkpoint,
                        const std::vector<tasks::DataChecksum>& data);

/// Returns a line if the resumed run, whose run.json is `run`, sums in another order than before: on another number of
/// ranks, or with another mode or micro-batch. Empty if it does not, if --deterministic makes the order irrelevant, or
/// if `saved` does not record it.
std::string changed_layout_line(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& run);

/// Returns a line with the command that continues the interrupted run in the output directory: the typed command
/// without --overwrite, without peer options that have no effect, and without --resume if `goes_on` or if it was
/// "never".
std::string how_to_go_on(const Arguments& arguments, bool goes_on, std::size_t ranks);

}  // namespace mylos::app
