#include "app/options/usage_error.hpp"
#include "app/run_commands.hpp"
#include "core/base/standard_output.hpp"
#include "data/squad/squad_metrics.hpp"

#include <fmt/format.h>

/// mylos score: the official SQuAD scripts' numbers.
namespace mylos::app {
namespace {

/// Options of v2.0's script would do nothing on v1.1.
void check_options(const Arguments& arguments, data::SquadVersion version) {
  if (version == data::SquadVersion::v2_0) return;
  for (const char* name : {"na-prob-file", "na-prob-thresh"}) {
    if (!arguments.given.contains(name)) continue;
    throw UsageError(
        fmt::format("--{}: {} is scored by the rules of SQuAD 1.1, which has no unanswerable questions; "
                    "--squad 2.0 scores it by those of 2.0",
                    name, arguments.positional[0]));
  }
}

data::SquadScore score(const Arguments& arguments, const data::SquadDataset& dataset) {
  const data::Predictions predictions = data::read_predictions(arguments.positional[1]);
  if (dataset.version == data::SquadVersion::v1_1) return data::score_v1(dataset, predictions);
  if (arguments.no_answer_probabilities.empty()) {
    return data::score_v2(dataset, predictions, nullptr, arguments.no_answer_threshold);
  }
  const data::NoAnswerScores no_answer = data::read_no_answer_scores(arguments.no_answer_probabilities);
  return data::score_v2(dataset, predictions, &no_answer, arguments.no_answer_threshold);
}

}  // namespace

int run_score(const Arguments& arguments) {
  data::SquadDataset dataset = data::read_squad(arguments.positional[0]);
  if (arguments.run.squad.squad) dataset.version = data::parse_squad_version(*arguments.run.squad.squad);
  check_options(arguments, dataset.version);
  const data::SquadScore result = score(arguments, dataset);
  if (!result.missing.empty()) {
    log_line(fmt::format("{}: {} questions have no prediction, the first is {}", arguments.positional[1],
                         result.missing.size(), result.missing.front()));
  }
  print(data::official_text(result, dataset.version) + "\n");
  return 0;
}

}  // namespace mylos::app
