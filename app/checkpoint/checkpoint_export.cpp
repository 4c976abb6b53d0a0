#include "app/checkpoint/checkpoint.hpp"
#include "app/options/usage_error.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/standard_output.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/model_names.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/wordpiece_files.hpp"
#include "nn/bert/bert_question_answering.hpp"
#include "tasks/question_answering/bert_shape.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

/// mylos checkpoint export.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* model_group = "/model/";

bool is_model_directory(const fs::path& path) {
  std::error_code unreadable;  // then it is none
  return fs::exists(path / "config.json", unreadable);
}

/// The model that the run began from, as its configuration says.
std::optional<fs::path> recorded_model(const parallel::CheckpointRecord& record) {
  if (!record.has("configuration")) return std::nullopt;
  const Json configuration = try_parse_ordered_json(record.text("configuration"));
  const Json resolved = configuration.is_object() ? configuration.value("resolved", Json()) : Json();
  if (!resolved.is_object() || !resolved.contains("model") || !resolved["model"].is_string()) return std::nullopt;
  return fs::path(resolved["model"].get<std::string>());
}

/// Where config.json and the tokenizer's files come from: --model, else the run's own last/ or best/, else the model
/// it began from.
fs::path model_directory(const Arguments& arguments, const fs::path& file, const parallel::CheckpointRecord& record) {
  if (!arguments.model.empty()) return data::resolve_model(arguments.model);
  const fs::path run = fs::absolute(file).parent_path().parent_path();
  for (const char* name : {"last", "best"}) {
    if (is_model_directory(run / name)) return run / name;
  }
  const std::optional<fs::path> recorded = recorded_model(record);
  if (recorded && is_model_directory(*recorded)) return *recorded;
  fail(fmt::format("{}: config.json and vocab.txt of its model are needed, and {} is gone; name the model with --model",
                   file.string(), recorded ? recorded->string() : "the model it was trained from"));
}

/// The model's tensors in the checkpoint, in the model's order. Errors: a tensor of another model.
std::vector<const parallel::CheckpointDataset*> find_tensors(const parallel::CheckpointIndex& index,
                                                             const fs::path& model, const data::BertConfig& config,
                                                             const fs::path& file) {
  const auto network = nn::make_bert_question_answering(tasks::bert_shape(config), Precision::float32);
  std::vector<const parallel::CheckpointDataset*> tensors;
  for (const ParameterRow& row : network->table().rows()) {
    const parallel::CheckpointDataset* found = index.find(model_group + row.name);
    ensure(found != nullptr && found->shape == row.shape,
           fmt::format("{}: its tensors are not those of the model in {}: {} {} is not in it; name the model with "
                       "--model",
                       file.string(), model.string(), row.name, parallel::shape_text(row.shape)));
    tensors.push_back(found);
  }
  const auto in_file =
      std::ranges::count_if(index.datasets, [](const auto& dataset) { return dataset.name.starts_with(model_group); });
  ensure(static_cast<std::size_t>(in_file) == tensors.size(),
         fmt::format("{}: has {} tensors of a model, the model in {} has {}; name the model with --model",
                     file.string(), in_file, model.string(), tensors.size()));
  return tensors;
}

}  // namespace

int export_checkpoint(const Arguments& arguments) {
  const fs::path& output = arguments.run.engine.output;
  if (output.empty()) throw UsageError("checkpoint export needs --output; see mylos checkpoint --help");
  const fs::path path = checkpoint_at(arguments.positional[1]);
  const parallel::CheckpointIndex index = parallel::read_checkpoint_index(path);
  const fs::path model = model_directory(arguments, path, index.record);
  const data::BertConfig config = data::read_bert_config(model / "config.json");
  const auto tensors = find_tensors(index, model, config, path);
  std::error_code unreadable;  // is told by what writes there
  ensure(!fs::exists(output, unreadable) || fs::is_empty(output, unreadable),
         fmt::format("--output {}: is there already; choose a new directory", output.string()));
  std::vector<data::TensorShape> shapes;
  for (const auto* tensor : tensors) {
    shapes.push_back({tensor->name.substr(std::string_view(model_group).size()), tensor->shape});
  }
  const PositionedFile file(path, PositionedFile::Use::read);
  const auto tokenizer = data::wordpiece_model_files(data::read_wordpiece_files(model), config.max_position_embeddings);
  data::PretrainedWriter writer(output, data::bert_config_json(config), tokenizer, shapes);
  for (const auto* tensor : tensors) {
    read_dataset(file, *tensor, [&](std::span<const float> values) { writer.write(values); });
  }
  writer.commit();
  log_line(fmt::format("{}: written from {}", output.string(), path.string()));
  return 0;
}

}  // namespace mylos::app
