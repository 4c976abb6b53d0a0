#include "tasks/question_answering/score_predictions.hpp"

#include "core/base/usage_error.hpp"
#include "data/squad/squad_metrics.hpp"
#include "tasks/question_answering/squad_config.hpp"

#include <fmt/format.h>

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

data::SquadScore score(const SquadConfig& config, const data::SquadDataset& dataset,
                       const data::Predictions& predictions) {
  if (dataset.version == data::SquadVersion::v1_1) return data::score_v1(dataset, predictions);
  if (config.no_answer_probabilities.empty()) {
    return data::score_v2(dataset, predictions, nullptr, config.no_answer_threshold);
  }
  const data::NoAnswerScores no_answer = data::read_no_answer_scores(config.no_answer_probabilities);
  return data::score_v2(dataset, predictions, &no_answer, config.no_answer_threshold);
}

}  // namespace

std::string score_predictions(const std::filesystem::path& file, const std::filesystem::path& predictions,
                              const RunConfig& run, const OptionSources& sources, const Notice& notice) {
  const SquadConfig& config = squad_config(run);
  data::SquadDataset dataset = data::read_squad(file);
  if (config.squad) dataset.version = data::parse_squad_version(*config.squad);
  check_options(sources, file, dataset.version);
  const data::SquadScore result = score(config, dataset, data::read_predictions(predictions));
  if (!result.missing.empty()) {
    notice(fmt::format("{}: {} questions have no prediction, the first is {}", predictions.string(),
                       result.missing.size(), result.missing.front()));
  }
  return data::official_text(result, dataset.version) + "\n";
}

}  // namespace mylos::tasks
