#include "app/options/usage_error.hpp"
#include "app/program/model_argument.hpp"
#include "app/program/replaceable_file.hpp"
#include "app/run_commands.hpp"
#include "core/base/files.hpp"
#include "core/base/standard_output.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/wordpiece_files.hpp"
#include "data/squad/feature_file.hpp"
#include "tasks/question_answering/squad_windows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

/// mylos prepare: tokenises a data set once.
namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

data::SquadDataset read_dataset(const Arguments& arguments) {
  const tasks::SquadConfig& squad = arguments.run.squad;
  data::SquadDataset dataset = data::read_squad(arguments.data);
  if (squad.squad) dataset.version = data::parse_squad_version(*squad.squad);
  if (squad.train_limit) data::limit_questions(dataset, *squad.train_limit);
  tasks::check_answers(dataset, arguments.data.string(), squad.strict, log_line);
  return dataset;
}

data::PreparedFeatures prepare(const Arguments& arguments) {
  const tasks::SquadConfig& squad = arguments.run.squad;
  const std::size_t vocab_size = data::read_bert_config(squad.model / "config.json").vocab_size;
  const data::TokenizerOptions options = data::read_tokenizer_options(squad.model);
  const data::WordPieceTokenizer tokenizer(data::load_vocabulary(squad.model, vocab_size), options);
  return data::prepare_features(read_dataset(arguments), tokenizer, options, tasks::feature_options(squad, false));
}

/// One window as a line for people: offsets are of the context, null for tokens that are not of it, and labels null
/// where there are none.
std::string feature_line(const data::PreparedFeatures& prepared, const data::Feature& feature) {
  const data::FeatureSet& features = prepared.features;
  std::vector<data::TokenId> ids;
  features.append_input_ids(feature, ids);
  const std::size_t first = features.context_position(feature);
  const auto ranges = features.context_offsets(feature);
  Json types = Json::array(), offsets = Json::array();
  for (std::size_t token = 0; token < ids.size(); ++token) {
    const bool is_context = token >= first && token < first + ranges.size();
    types.push_back(token < first ? 0 : 1);
    offsets.push_back(is_context ? Json::array({ranges[token - first].begin, ranges[token - first].end})
                                 : Json(nullptr));
  }
  const auto label = [](std::int32_t position) { return position < 0 ? Json(nullptr) : Json(position); };
  const Json line = {{"id", prepared.dataset.questions[feature.question].id},
                     {"window", feature.window},
                     {"input_ids", ids},
                     {"token_type_ids", types},
                     {"offsets", offsets},
                     {"start", label(feature.start)},
                     {"end", label(feature.end)}};
  return line.dump() + "\n";
}

/// Whether `feature_line` made the first line of a file.
bool is_prepared(const std::filesystem::path& file) {
  if (file.extension() == ".h5") return data::is_feature_file(file);
  const std::string begin = beginning_of(file);
  return begin.starts_with("{\"id\":") && begin.find(",\"window\":0,\"input_ids\":[") != std::string::npos;
}

void write_lines(const std::filesystem::path& path, const data::PreparedFeatures& prepared) {
  StagedFile file(path);
  for (const data::Feature& feature : prepared.features.features) file.write(feature_line(prepared, feature));
  file.commit();
}

}  // namespace

int run_prepare(const Arguments& told) {
  Arguments arguments = told;
  const std::filesystem::path& output = arguments.run.engine.output;
  const std::string suffix = output.extension().string();
  if (suffix != ".h5" && suffix != ".jsonl") {
    throw UsageError(fmt::format("--output {}: expected a name that ends in .h5 or .jsonl", output.string()));
  }
  check_replaceable({"--output", output, "written by mylos prepare", is_prepared}, arguments.overwrite);
  resolve_model_argument(arguments);
  const data::PreparedFeatures prepared = prepare(arguments);
  suffix == ".h5" ? data::write_feature_file(output, prepared) : write_lines(output, prepared);
  log_line(fmt::format("{}: {} questions, {} windows", output.string(), prepared.dataset.questions.size(),
                       prepared.features.features.size()));
  return 0;
}

}  // namespace mylos::app
