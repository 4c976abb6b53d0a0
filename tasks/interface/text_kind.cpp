#include "tasks/interface/text_kind.hpp"

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/model_names.hpp"
#include "families/model_directory.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/models/model_export.hpp"
#include "train/engine/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace mylos::tasks {
namespace {

/// Returns the directory where `mylos fetch` put a model of built-in sizes. Errors: std::runtime_error if it has not.
std::filesystem::path fetched_directory(const families::NamedModel& model, const std::filesystem::path& data) {
  try {
    return families::resolve_model(FileReader(), model.fetched);
  } catch (const std::runtime_error&) {
    std::error_code unreadable;                                                                   // counts as missing
    if (std::filesystem::exists(data::cached_model_directory(model.fetched), unreadable)) throw;  // but damaged
    fail(
        fmt::format("--data {}: only the sizes of {} are built in, and tokenizing data needs its directory; get it "
                    "with: mylos fetch {}; or leave out --data",
                    data.string(), model.name, model.fetched));
  }
}

/// Returns the checksum of what an adapted network reads from its base.
std::uint64_t base_checksum(const ParameterTable& table, const data::PretrainedModel& base,
                            const families::TextModel& model) {
  std::vector<data::TensorSpec> wanted;  // a base may lack what is trained whole, such as a head
  for (const ParameterTensor& tensor : table.tensors()) {
    if (!tensor.adapter) wanted.push_back({tensor.name, tensor.shape, tensor.group.trainable});
  }
  return train::adapted_checksum(table, [&](const train::TensorWriter& write) {
    base.read_weights(FileReader(), wanted, model.naming,
                      [&](std::size_t row, const data::TensorReader& read) { write(wanted[row].name, read); });
  });
}

TaskTraits with_input(TaskTraits traits, const TextHead& head) {
  traits.takes = head.input;
  traits.architecture = head.architecture;
  return traits;
}

}  // namespace

TextKind::TextKind(TaskTraits traits, const TextTraits& text)
    : TaskKind(with_input(std::move(traits), text.head)), text_(text) {}

void TextKind::fit_max_length(RunConfig& run, std::size_t positions, const std::string& name,
                              const OptionSources& sources, const Notice& notice) const {
  std::size_t& length = text_.max_length(run);
  if (length <= positions) return;
  // Never change a value given by the user.
  if (sources.was_given("max-length")) {
    throw UsageError(
        fmt::format("--max-length {}: expected at most {}, the positions that {} has", length, positions, name));
  }
  notice(fmt::format("{} has {} positions: --max-length is {}", name, positions, positions));
  length = positions;
}

void TextKind::fit_model(const FileReader& files, RunConfig& run, const std::string& name, const OptionSources& sources,
                         const Notice& notice) const {
  const data::ModelConfig config(files, run.task.model / "config.json");
  const std::size_t positions = families::read_text_model(config, text_.head.input).positions;
  fit_max_length(run, positions, name, sources, notice);
}

void TextKind::merge(const RunConfig& run, const std::filesystem::path& output, const Notice& notice) const {
  const FileReader files;
  const LoadedModel loaded(files, run, text_.head, nullptr, notice);
  const ParameterTable& table = loaded.network().table();
  RunConfig exported = run;
  if (!run.task.export_precision) exported.task.export_precision = loaded.files().weights_precision(files);
  const auto exporter = pretrained_exporter(files, exported, loaded.files(), text_.head.architecture);
  exporter->take_tensors(table);
  const auto is_of_head = [&](const std::string& name) { return table.tensor(table.find(name)).in_head; };
  const train::TensorSource merged = [&](const train::TensorSink& take) {
    loaded.read_weights(files, is_of_head, [&](const std::string& name, const data::TensorReader& read) {
      const ParameterTensor& tensor = table.tensor(table.find(name));
      std::vector<float> values;
      train::for_each_piece(tensor.size, [&](std::size_t first, std::size_t count) {
        values.resize(count);
        read(first, values);
        ensure(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }),
               fmt::format("{} is not finite with the adapter in {}; use another checkpoint of its run", name,
                           run.task.adapters.directory.string()));
        take(tensor, first, values);
      });
    });
  };
  train::export_model(*exporter, merged, output);
}

ExportedModel TextKind::export_model(const TrainedModel& trained) const {
  const data::PretrainedModel pretrained(FileReader(), trained.model);
  const families::TextModel model = families::read_text_model(pretrained, text_.head.input);
  auto network = model.network(text_.head.settings(model), Precision::float32);
  RunConfig run = trained.run;
  run.task.model = trained.model;
  if (const RunAdapter adapter(FileReader(), run, model, text_.head.adapters, [](const std::string&) {});
      adapter.exists()) {
    adapter.adapt(*network);
    ExportedModel exported{std::move(network), {}};
    const ParameterTable& table = exported.network->table();
    exported.exporter = std::make_unique<AdapterExporter>(adapter.config(), table);
    if (trained.checks_base) exported.base_checksum = base_checksum(table, pretrained, model);
    return exported;
  }
  auto exporter = pretrained_exporter(FileReader(), run, pretrained, text_.head.architecture);
  exporter->take_tensors(network->table());
  return {std::move(network), std::move(exporter)};
}

PlannedRun TextKind::plan(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice) const {
  RunConfig fitted = run;
  const families::NamedModel named = families::read_named_model(name, text_.head.input);
  if (!named.directory.empty()) {
    fitted.task.model = named.directory;
  } else if (!data.empty()) {
    fitted.task.model = fetched_directory(named, data);
  }
  families::TextModel model = families::read_text_model(named.config, text_.head.input, run.task.dropout);
  fit_max_length(fitted, model.positions, name, sources, notice);
  const auto dropout = static_cast<double>(model.attention_dropout);
  model.attention.kernel = planned_attention(run.task, attention_use(model.attention, run.engine, dropout));
  PlannedRun planned{.config = std::move(fitted),
                     .name = named.name,
                     .model = named.fetched,
                     .network = model.network(text_.head.settings(model), run.engine.precision)};
  std::filesystem::path& directory = planned.config.task.adapters.directory;
  if (directory.empty()) directory = families::adapter_directory(name);
  const RunAdapter adapter(FileReader(), planned.config, model, text_.head.adapters, notice);
  if (adapter.exists()) adapter.adapt(*planned.network);
  if (data.empty()) {
    text_.plan_without_data(planned);
    planned.data += "; --data FILE plans for a file";
    return planned;
  }
  RunConfig reading = planned.config;
  reading.task.train = data;
  reading.task.attention = AttentionKernel::portable;  // only the data are used, and there may be no GPU here
  const std::unique_ptr<TextTask> task = text_.make(FileReader(), reading, notice);
  task->read_data();
  planned.lengths = task->lengths();
  planned.data = fmt::format("{}: {}", data.string(), count_of(planned.lengths.size(), text_.sample));
  return planned;
}

}  // namespace mylos::tasks
