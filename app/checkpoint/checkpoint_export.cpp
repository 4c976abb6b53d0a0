#include "app/checkpoint/checkpoint.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/model_argument.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/trained_model.hpp"
#include "tasks/task_kinds.hpp"
#include "train/engine/loop/run_checkpoints.hpp"
#include "train/engine/models/model_export.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

/// mylos checkpoint export.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char *model_group = "/model/", *state_group = "/state/";

bool is_model_directory(const fs::path& path) {
  std::error_code unreadable;  // then it counts as absent
  return fs::exists(path / "config.json", unreadable);
}

/// Returns the run.json of the run that wrote the checkpoint; null if the checkpoint has none.
OrderedJson recorded_configuration(const parallel::CheckpointRecord& record) {
  if (!record.has("configuration")) return {};
  return try_parse_ordered_json(record.text("configuration"));
}

/// Returns the `resolved` object of a run.json; null if there is none.
OrderedJson recorded_resolved(const OrderedJson& configuration) {
  const OrderedJson resolved =
      configuration.is_object() ? configuration.value("resolved", OrderedJson()) : OrderedJson();
  return resolved.is_object() ? resolved : OrderedJson();
}

/// Returns the model that the run started from, according to its configuration.
std::optional<fs::path> recorded_model(const OrderedJson& configuration) {
  const OrderedJson resolved = recorded_resolved(configuration);
  if (!resolved.is_object() || !resolved.contains("model") || !resolved["model"].is_string()) return std::nullopt;
  return fs::path(resolved["model"].get<std::string>());
}

/// Returns the task that trains a model of this name without a directory; null if there is none, or if it is a
/// directory.
const tasks::TaskKind* kind_by_name(const fs::path& model) {
  const tasks::TaskKind* known = tasks::kind_of_known_model(model.string());
  return known != nullptr && known->trains_by_name(model.string()) ? known : nullptr;
}

/// Returns the directory of config.json and the tokenizer's files: --model, else last/ or best/ of the run itself, else
/// the model that it started from, which may be a name.
fs::path model_directory(const Arguments& arguments, const fs::path& file, const OrderedJson& configuration) {
  if (!arguments.model.empty() && kind_by_name(arguments.model) != nullptr) return arguments.model;
  if (!arguments.model.empty()) return families::resolve_model(FileReader(), arguments.model);
  const fs::path run = fs::absolute(file).parent_path().parent_path();
  for (const char* name : {"last", "best"}) {
    if (is_model_directory(run / name)) return run / name;
  }
  const std::optional<fs::path> recorded = recorded_model(configuration);
  if (recorded && (is_model_directory(*recorded) || kind_by_name(*recorded) != nullptr)) return *recorded;
  fail(fmt::format(
      "{}: config.json and vocab.txt of its model are needed, but {} does not exist; give the model with --model",
      file.string(), recorded ? recorded->string() : "the model that it was trained from"));
}

/// A tensor of the model and its dataset in the checkpoint.
struct SavedTensor {
  const ParameterTensor* tensor;
  const parallel::CheckpointDataset* dataset;
};

/// Appends the datasets below `group` of the tensors that `exporter` takes. Errors: std::runtime_error if a tensor
/// belongs to another model.
void find_tensors(const parallel::CheckpointIndex& index, const train::ModelExporter& exporter,
                  std::span<const ParameterTensor> tensors, std::string_view group, const fs::path& model,
                  const fs::path& file, std::vector<SavedTensor>& saved) {
  for (const ParameterTensor& tensor : tensors) {
    if (!exporter.exports(tensor)) continue;
    const parallel::CheckpointDataset* found = index.find(std::string(group) + tensor.name);
    ensure(found != nullptr && found->shape == tensor.shape,
           fmt::format(
               "{}: its tensors differ from those of the model in {}: {} {} is missing; give the model with --model",
               file.string(), model.string(), tensor.name, shape_text(tensor.shape)));
    saved.push_back({&tensor, found});
  }
}

/// Returns the tensors of an export in order: parameters, then state.
std::vector<SavedTensor> exported_tensors(const parallel::CheckpointIndex& index, const tasks::ExportedModel& exported,
                                          const fs::path& model, const fs::path& file) {
  const ParameterTable& table = exported.network->table();
  std::vector<SavedTensor> tensors;
  find_tensors(index, *exported.exporter, table.tensors(), model_group, model, file, tensors);
  const auto in_file =
      std::ranges::count_if(index.datasets, [](const auto& dataset) { return dataset.name.starts_with(model_group); });
  ensure(static_cast<std::size_t>(in_file) == tensors.size(),
         fmt::format("{}: has {} tensors, but the model in {} has {}; give the model with --model", file.string(),
                     in_file, model.string(), tensors.size()));
  find_tensors(index, *exported.exporter, table.state_tensors(), state_group, model, file, tensors);
  return tensors;
}

/// Passes the values of `tensors` to `take`. Errors: std::runtime_error if a checksum is wrong.
void read_tensors(const std::vector<SavedTensor>& tensors, const train::TensorSink& take) {
  // clang with OpenMP captures no structured binding.
  for (const SavedTensor& saved : tensors) {
    std::size_t first = 0;
    read_dataset(*saved.dataset, [&](std::span<const float> values) {
      take(*saved.tensor, first, values);
      first += values.size();
    });
  }
}

/// Returns the command's settings with the precision and the adapters of the run that wrote the checkpoint.
tasks::RunConfig recorded_run(Arguments arguments, const tasks::TaskKind& kind, const fs::path& file,
                              const parallel::CheckpointRecord& record, const OrderedJson& configuration) {
  arguments.task = &kind;
  if (record.has("precision")) {
    tasks::RunConfig& run = arguments.run;
    run.engine.precision = parse_precision(record.text("precision")).value_or(run.engine.precision);
  }
  if (configuration.is_object()) {
    take_settings("checkpoint/export", Json(configuration), file.string(), arguments);
    const OrderedJson name = configuration.value("model", OrderedJson());
    const std::optional<fs::path> model = recorded_model(configuration);
    if (name.is_string() && model) {
      arguments.run.task.adapters.base = families::hub_name(FileReader(), name.get<std::string>(), *model);
    }
  }
  return arguments.run;
}

/// Returns the task of the model in `directory`. If nothing names it, returns the default, whose errors tell what is
/// missing.
const tasks::TaskKind& kind_in(const fs::path& directory) {
  const tasks::TaskKind* named = kind_by_name(directory);
  const tasks::TaskKind* found = named != nullptr ? named : tasks::kind_of_model(FileReader(), directory);
  return found == nullptr ? tasks::default_task_kind() : *found;
}

/// Writes the adapters of a run with `write` to a temporary directory, and then the model with them in its weights.
void write_merged(const tasks::TaskKind& kind, const tasks::TrainedModel& trained,
                  const std::function<void(const fs::path&)>& write, const fs::path& output) {
  tasks::RunConfig run = trained.run;
  tasks::AdapterSettings& adapters = run.task.adapters;
  if (adapters.rank == 0 && adapters.directory.empty()) {
    throw UsageError("--merge: the run has no adapters, so all its weights are exported; leave it out");
  }
  const fs::path beside = (fs::absolute(output) / "").lexically_normal().parent_path().concat("-adapter");
  remove_abandoned(beside);
  const StagedDirectory staged(beside);
  adapters = {};
  adapters.directory = staged.path() / "adapter";
  run.task.model = trained.model;
  write(adapters.directory);
  kind.merge(run, output, log_line);
}

/// Errors: the weights in `directory` are not those that the adapters in the checkpoint were trained with.
void check_base(const tasks::ExportedModel& exported, const parallel::CheckpointRecord& record, const fs::path& file,
                const fs::path& directory) {
  constexpr const char* member = train::AdaptedModel::checksum_member;
  if (!exported.base_checksum || !record.has(member) || record.integer(member) == *exported.base_checksum) return;
  fail(fmt::format(
      "{}: its adapters belong to the model in {}, and the weights in {} or the settings of the adapters are others; "
      "restore them, or give that model with --model",
      file.string(), record.text(train::AdaptedModel::directory_member), directory.string()));
}

}  // namespace

int export_checkpoint(const Arguments& arguments) {
  const fs::path& output = arguments.run.engine.output;
  if (output.empty()) throw UsageError("checkpoint export needs --output; see mylos checkpoint --help");
  const fs::path path = checkpoint_at(arguments.positional[1]);
  const parallel::CheckpointIndex index = parallel::read_checkpoint_index(path);
  const OrderedJson configuration = recorded_configuration(index.record);
  const fs::path directory = model_directory(arguments, path, configuration);
  const tasks::TaskKind& kind = kind_in(directory);
  const tasks::TrainedModel trained{.model = directory,
                                    .run = recorded_run(arguments, kind, path, index.record, configuration),
                                    .resolved = recorded_resolved(configuration),
                                    .checks_base = arguments.checkpoint->merges};
  const tasks::ExportedModel model = kind.export_model(trained);
  const std::vector<SavedTensor> tensors = exported_tensors(index, model, directory, path);
  check_new_directory(output);
  check_base(model, index.record, path, directory);
  const auto write = [&](const fs::path& target) {
    train::export_model(
        *model.exporter, [&](const train::TensorSink& take) { read_tensors(tensors, take); }, target);
  };
  arguments.checkpoint->merges ? write_merged(kind, trained, write, output) : write(output);
  log_line(fmt::format("{}: written from {}", output.string(), path.string()));
  return 0;
}

}  // namespace mylos::app
