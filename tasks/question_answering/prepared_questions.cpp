#include "tasks/question_answering/question_answering_kind.hpp"

#include "core/base/files/files.hpp"
#include "data/squad/feature_file.hpp"
#include "families/model_families.hpp"
#include "tasks/question_answering/squad_windows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mylos::tasks {
namespace {

data::SquadDataset read_dataset(const RunConfig& run, const std::filesystem::path& file, const Notice& notice) {
  const SquadConfig& config = squad_config(run);
  data::SquadDataset dataset = data::read_squad(file);
  if (config.squad) dataset.version = data::parse_squad_version(*config.squad);
  if (run.task.train_limit) data::limit_questions(dataset, *run.task.train_limit);
  if (config.repair_offsets) repair_answers(dataset, file.string(), false, notice);
  check_answers(dataset, file.string(), config.strict, notice);
  return dataset;
}

data::PreparedFeatures prepare(const RunConfig& run, const std::filesystem::path& file, const Notice& notice) {
  families::notice_tokenizer_choice(FileReader(), run.task.model, notice);
  return data::prepare_features(read_dataset(run, file, notice),
                                *families::read_tokenizer(FileReader(), run.task.model),
                                feature_options(squad_config(run), false));
}

/// Writes a window as a human-readable line. Offsets refer to the context and are null for other tokens; labels are
/// null if there are none.
std::string feature_line(const data::PreparedFeatures& prepared, const data::Feature& feature) {
  const data::FeatureSet& features = prepared.features;
  std::vector<data::TokenId> ids;
  features.append_input_ids(feature, ids);
  const std::size_t first = features.context_position(feature);
  const auto ranges = features.context_offsets(feature);
  nlohmann::ordered_json types = nlohmann::ordered_json::array(), offsets = types;
  for (std::size_t token = 0; token < ids.size(); ++token) {
    const bool is_context = token >= first && token < first + ranges.size();
    types.push_back(token < first ? 0 : features.layout.second_type);
    offsets.push_back(is_context
                          ? nlohmann::ordered_json::array({ranges[token - first].begin, ranges[token - first].end})
                          : nlohmann::ordered_json(nullptr));
  }
  const auto label = [](std::int32_t position) {
    return position < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(position);
  };
  const nlohmann::ordered_json line = {{"id", prepared.dataset.questions[feature.question].id},
                                       {"window", feature.window},
                                       {"input_ids", ids},
                                       {"token_type_ids", types},
                                       {"offsets", offsets},
                                       {"start", label(feature.start)},
                                       {"end", label(feature.end)}};
  return line.dump() + "\n";
}

void write_lines(const std::filesystem::path& path, const data::PreparedFeatures& prepared) {
  StagedFile file(path);
  for (const data::Feature& feature : prepared.features.features) file.write(feature_line(prepared, feature));
  file.commit();
}

}  // namespace

void prepare_questions(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice) {
  const data::PreparedFeatures prepared = prepare(run, file, notice);
  output.extension() == ".h5" ? data::write_feature_file(output, prepared) : write_lines(output, prepared);
  notice(fmt::format("{}: {} questions, {} windows", output.string(), prepared.dataset.questions.size(),
                     prepared.features.features.size()));
}

bool is_prepared_questions(const std::filesystem::path& file) {
  if (file.extension() == ".h5") return data::is_feature_file(file);
  const std::string begin = beginning_of(file);
  return begin.starts_with("{\"id\":") && begin.find(",\"window\":0,\"input_ids\":[") != std::string::npos;
}

}  // namespace mylos::tasks
