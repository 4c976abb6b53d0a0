#include "app/runs/run_description.hpp"

#include "app/bench/calibration.hpp"
#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/program/build_info.hpp"
#include "core/base/process/processors.hpp"
#include "core/device.hpp"
#include "train/engine/loop/training_scores.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/selection/attention_selection.hpp"
#include "train/engine/selection/gemm_selection.hpp"
#include "train/monitor/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::app {
namespace {

std::size_t parameters_of(const nn::Model& model) {
  std::size_t count = 0;
  for (const ParameterTensor& row : model.table().tensors()) count += row.size;
  return count;
}

double epochs_of(const tasks::Task& task, const train::Trainer& trainer) {
  return static_cast<double>(trainer.steps()) / static_cast<double>(task.steps_per_epoch());
}

/// Returns the run's processes on the node of this rank.
std::vector<long> processes_of_this_node(const parallel::Launch& launch) {
  std::vector<long> processes;
  for (const parallel::RankPlacement& placement : launch.placements()) {
    if (placement.node == launch.placement().node) processes.push_back(placement.process);
  }
  return processes;
}

/// Returns the names of the run's hosts, in rank order.
std::vector<std::string> hosts_of(const parallel::Launch& launch) {
  std::vector<std::string> hosts;
  for (const parallel::RankPlacement& placement : launch.placements()) {
    if (std::ranges::find(hosts, placement.host) == hosts.end()) hosts.push_back(placement.host);
  }
  return hosts;
}

nlohmann::ordered_json checksums_json(const std::vector<tasks::DataChecksum>& checksums) {
  nlohmann::ordered_json members = nlohmann::ordered_json::object();
  for (const tasks::DataChecksum& data : checksums) members[data.option] = checksum_text(data);
  return members;
}

/// Returns the absolute path of the directory, or the name of a model without one.
std::string model_location(const std::filesystem::path& model) {
  if (!std::filesystem::is_directory(model)) return model.string();
  return std::filesystem::absolute(model).lexically_normal().string();
}

/// Returns the largest batch of the run, as counted by --batch.
std::size_t batch_size(const tasks::Task& task, std::size_t steps) {
  return task.work().batch_size(train::largest_micro_batch(task, steps, {}));
}

}  // namespace

train::RunDescription describe_run(const Arguments& arguments, const tasks::Task& task, const train::Trainer& trainer,
                                   parallel::Launch& launch, std::size_t free_memory) {
  const tasks::TaskConfig& configured = arguments.run.task;
  return {.model = fmt::format("{}: {}", arguments.model, task.model_text()),
          .parameters = parameters_of(task.model()),
          .frozen = task.model().table().frozen_size(),
          .train = fmt::format(
              "{}: {}{}", configured.train.string(), task.train_text(),
              configured.train_fraction < 1.0
                  ? fmt::format(", of which --train-fraction uses {:.4g} %", 100.0 * configured.train_fraction)
                  : ""),
          .dev = task.evaluation() == nullptr ? "" : fmt::format("{}: {}", configured.dev.string(), task.dev_text()),
          .precision = std::string(to_string(arguments.run.engine.precision)),
          .loss_scale = trainer.loss_scale(),
          .gemm = describe(trainer.gemm()),
          .execution = ExecutionSpace::name(),
          .ranks = launch.world().size(),
          .nodes = launch.nodes(),
          .threads = launch.threads(),
          .placements = launch.placements(),
          .steps = trainer.steps(),
          .batch = batch_size(task, trainer.steps()),
          .epochs = epochs_of(task, trainer),
          .work = task.work(),
          .memory = trainer.plan(),
          .free_memory = free_memory,
          .load = busy_text(node_load(processes_of_this_node(launch))),
          .output = arguments.run.engine.output.string()};
}

std::string checksum_text(const tasks::DataChecksum& data) { return tasks::checksum_text(data.checksum); }

nlohmann::ordered_json run_json(const Arguments& arguments, const tasks::Task& task, const train::Trainer& trainer,
                                parallel::Launch& launch, const std::vector<AttentionProof>& attention) {
  const train::RankLayout& layout = trainer.plan().layout;
  nlohmann::ordered_json run = settings_json(*find_command("train"), arguments);
  run[program_key] = program_json();
  run[program_key][changed_key] = changed_options(*find_command("train"), arguments);
  run[resolved_key] = {{"model", model_location(arguments.run.task.model)},
                       {checksums_key, checksums_json(task.data_checksums())},
                       {"steps", trainer.steps()},
                       {"epochs", epochs_of(task, trainer)},
                       {train::work_key, task.work().name},
                       {"batch", batch_size(task, trainer.steps())},
                       {"micro-batch", task.work().batch_size(trainer.plan().largest)},
                       {"memory", trainer.plan().peak()},
                       {"gemm", train::to_json(trainer.gemm())},
                       {"execution", ExecutionSpace::name()},
                       {"device", runs_on_host ? processor_model() : device_name()},
                       {"hosts", hosts_of(launch)},
                       {"ranks", launch.world().size()},
                       {"nodes", launch.nodes()},
                       {"threads", launch.threads()},
                       {"mode", to_string(layout.strategy)},
                       {"shard-size", layout.shards},
                       {"writers", trainer.checkpoint_writers()}};
  run[resolved_key].update(task.resolved());
  if (const auto& choice = launch.communicator(); !choice.remark.empty()) {
    nlohmann::ordered_json& communicator = run[resolved_key]["communicator"];
    communicator["library"] = choice.nccl ? "nccl" : "mpi";
    if (!choice.nccl) communicator["reason"] = choice.remark;
    if (choice.nccl) run[resolved_key][bandwidth_key] = choice.bytes_per_second;
  }
  if (!attention.empty()) run[resolved_key]["attention-agreement"] = train::to_json(attention);
  const std::vector<train::MetricKind> kinds = train::metric_kinds(arguments.run.engine, task);
  if (!kinds.empty()) run[resolved_key][train::metrics_key] = train::to_json(kinds);
  return run;
}

}  // namespace mylos::app
