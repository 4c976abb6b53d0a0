#include "app/runs/prepared_run.hpp"

#include "app/bench/calibration.hpp"
#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/options/train_options.hpp"
#include "app/program/build_info.hpp"
#include "app/program/on_ranks.hpp"
#include "app/runs/resumption.hpp"
#include "app/runs/run_description.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/device.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/communicator/consistency.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/engine/memory/run_bounds.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

/// The run that is resumed, as its checkpoint records it.
struct RecordedRun {
  nlohmann::ordered_json run;                ///< its run.json
  std::optional<std::size_t> extended_from;  ///< its number of steps, if --extend continues it
};

/// Resumes the run of a checkpoint: takes over its settings, and logs the step at which it continues.
RecordedRun take_up(const TrainRank& rank, Arguments& arguments, const std::filesystem::path& checkpoint) {
  const parallel::CheckpointRecord record = parallel::read_checkpoint_record(rank.ranks, checkpoint);
  train::CheckpointConfig& checkpoints = arguments.run.engine.checkpoints;
  RecordedRun recorded;
  on_all_ranks(rank.ranks, [&] {
    auto [run, extends] = take_up_run(record.text("configuration"), checkpoint, arguments);
    recorded.run = std::move(run);
    checkpoints.extend = extends;
  });
  if (checkpoints.extend) recorded.extended_from = record.integer("steps");
  checkpoints.resume = checkpoint;
  if (rank.is_first()) {
    log_line(fmt::format("{} after step {}, from {}", arguments.train->dry_run ? "would go on" : "goes on",
                         record.integer("step"), checkpoint.string()));
  }
  return recorded;
}

/// Returns the values that must be equal on all ranks; otherwise they would train different models.
std::vector<parallel::NamedValue> described_run(const Arguments& arguments) {
  const BuildInfo build = build_info();
  std::vector<parallel::NamedValue> values = {
      {"the build", fmt::format("{} {} {}", build.version, build.commit, build.compiler)},
      {"--recipe",
       arguments.train->recipe.empty() ? "not given" : arguments.train->recipe},  // before the settings that it makes
      {"--task", std::string(arguments.task->name())}};
  const nlohmann::ordered_json settings = settings_json(*find_command("train"), arguments);
  for (const auto& [name, value] : settings.items()) {
    values.emplace_back("--" + name, value.is_null() ? "not given" : plain_text(value));
  }
  return values;
}

/// Returns the same for the data, which each rank may have read from its own disk.
std::vector<parallel::NamedValue> described_data(const tasks::Task& task) {
  std::vector<parallel::NamedValue> values;
  for (const tasks::DataChecksum& data : task.data_checksums()) {
    values.emplace_back(fmt::format("the checksum of --{}'s data", data.option), checksum_text(data));
  }
  return values;
}

TaskOnRanks load_task(const TrainRank& rank, const Arguments& arguments) {
  parallel::expect_equal_on_all_ranks(rank.ranks, described_run(arguments));
  TaskOnRanks loaded = make_task(rank.ranks, *arguments.task, arguments.run, rank.notice());
  parallel::expect_equal_on_all_ranks(rank.ranks, described_data(*loaded.task));
  return loaded;
}

/// Drops the recorded layout if it is from another kind of device, whose memory differs.
void drop_foreign_layout(std::optional<train::RecordedLayout>& recorded) {
  if (recorded && !runs_on_host && recorded->device != device_name()) recorded.reset();
}

/// Logs the new length of an extended run. Errors: UsageError if the new length is not larger than `before`.
void check_extension(const TrainRank& rank, std::size_t before, std::size_t steps) {
  on_all_ranks(rank.ranks, [&] {
    if (steps > before) return;
    throw UsageError(fmt::format("--extend: the run has {}, and {} are requested; give larger --steps or --epochs",
                                 count_of(before, "step"), count_text(steps)));
  });
  if (rank.is_first()) {
    log_line(fmt::format("extended from {} to {}: the learning rate follows the longer schedule from here on",
                         count_of(before, "step"), count_text(steps)));
  }
}

}  // namespace

std::string TrainRank::speaker() const { return verbose ? fmt::format("rank {}: ", ranks.rank()) : ""; }

Notice TrainRank::notice() const {
  if (!logs()) return [](const std::string&) {};
  return [speaker = speaker()](const std::string& line) { log_line(speaker + line); };
}

PreparedRun prepare_run(const TrainRank& rank, Arguments& arguments, const std::filesystem::path& checkpoint) {
  RecordedRun recorded;
  if (!checkpoint.empty()) recorded = take_up(rank, arguments, checkpoint);
  TaskOnRanks loaded = load_task(rank, arguments);
  tasks::Task& task = *loaded.task;
  train::TrainConfig& engine = arguments.run.engine;
  drop_foreign_layout(engine.recorded_layout);
  const std::size_t free_memory = train::available_memory();
  if (!checkpoint.empty()) {
    on_all_ranks(rank.ranks, [&] { check_resumed_data(recorded.run, checkpoint, task.data_checksums()); });
  }
  if (recorded.extended_from) check_extension(rank, *recorded.extended_from, train::total_steps(engine, task));
  return {.task = std::move(loaded.task),
          .attention = std::move(loaded.attention.proofs),
          .resumed = std::move(recorded.run),
          .free_memory = free_memory,
          .trainer{engine, task, train::ranks_of(rank.launch)}};
}

}  // namespace mylos::app
