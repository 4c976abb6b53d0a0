#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "data/squad/squad_metrics.hpp"
#include "tasks/question_answering/question_answering_kind.hpp"
#include "tasks/question_answering/squad_config.hpp"

#include <fmt/format.h>

/// mylos score: the metrics of a data set's official script.
namespace mylos::tasks {
namespace {

/// Refuses options of the v2.0 script for v1.1, where they would have no effect.
void check_options(const OptionSources& sources, const std::filesystem::path& file, data::SquadVersion version) {
  if (version == data::SquadVersion::v2_0) return;
  for (const char* name : {"na-prob-file", "na-prob-thresh"}) {
    if (!sources.was_given(name)) continue;
    throw UsageError(fmt::format(
        "--{}: {} is scored by the rules of SQuAD 1.1, which has no unanswerable questions; use --squad 2.0", name,
        file.string()));
  }
}

data::SquadScore score_of(const SquadConfig& config, const data::SquadDataset& dataset,
                          const data::Predictions& predictions) {
  if (dataset.version == data::SquadVersion::v1_1) return data::score_v1(dataset, predictions);
  if (config.no_answer_probabilities.empty()) {
    return data::score_v2(dataset, predictions, nullptr, config.no_answer_threshold);
  }
  const data::NoAnswerScores no_answer = data::read_no_answer_scores(config.no_answer_probabilities);
  return data::score_v2(dataset, predictions, &no_answer, config.no_answer_threshold);
}

}  // namespace

void score(const CommandCall& call) {
  const std::filesystem::path file = call.words[0], predictions = call.words[1];
  const SquadConfig& config = squad_config(call.run);
  data::SquadDataset dataset = data::read_squad(file);
  if (config.squad) dataset.version = data::parse_squad_version(*config.squad);
  check_options(call.sources, file, dataset.version);
  const data::SquadScore result = score_of(config, dataset, data::read_predictions(predictions));
  if (!result.missing.empty()) {
    log_line(fmt::format("{}: {} questions have no prediction, the first is {}", predictions.string(),
                         result.missing.size(), result.missing.front()));
  }
  print(data::official_text(result, dataset.version) + "\n");
}

}  // namespace mylos::tasks
