#include "tasks/question_answering/question_answerer.hpp"

#include "tasks/interface/attention_choice.hpp"

namespace mylos::tasks {
namespace {

data::SquadDataset dataset_of(const std::string& context, const std::vector<std::string>& questions) {
  data::SquadDataset dataset;
  dataset.contexts = {context};
  for (const std::string& question : questions) {
    dataset.questions.push_back({.id = question, .context = 0, .question = question, .answers = {}});
  }
  return dataset;
}

data::PipelineWindow pipeline_window(const SquadEvaluation& evaluation, std::size_t window) {
  const data::FeatureSet& features = evaluation.windows().features;
  const data::Feature& feature = features.features[window];
  const auto context = features.contexts.ids(features.context_of_question[feature.question]);
  return {.logits = evaluation.window_logits(window),
          .ids = context.subspan(feature.context_begin, feature.context_count)};
}

/// Timing the providers would take longer than answering, and answers would depend on the timings.
train::GemmConfig untimed(train::GemmConfig gemm) {
  if (gemm.provider == train::GemmConfig::automatic && !gemm.recorded) gemm.provider = default_gemm_provider();
  return gemm;
}

/// Proves and chooses the attention kernel of the task, which is returned.
SquadTask& with_proven_attention(SquadTask& task, const RunConfig& run, const Notice& notice) {
  choose_attention(*parallel::make_self_communicator(), run, task, notice);
  return task;
}

}  // namespace

QuestionAnswerer::QuestionAnswerer(const RunConfig& run, const Notice& notice)
    : config_(squad_config(run)),
      task_(run, notice),
      evaluator_(with_proven_attention(task_, run, notice), run.engine.precision, untimed(run.engine.gemm),
                 SquadEvaluation::bound_of_batches(config_.max_length)) {}

std::vector<data::PipelineAnswer> QuestionAnswerer::answer(const std::string& context,
                                                           const std::vector<std::string>& questions) {
  SquadEvaluation evaluation(cut_windows(dataset_of(context, questions), task_.tokenizer(), config_, false), config_);
  evaluator_.predict(evaluation);
  const auto& features = evaluation.windows().features.features;
  std::vector<data::PipelineAnswer> answers;
  std::vector<data::PipelineWindow> windows;
  const bool may_be_none = config_.squad && data::parse_squad_version(*config_.squad) == data::SquadVersion::v2_0;
  for (std::size_t question = 0, window = 0; question < questions.size(); ++question) {
    windows.clear();
    for (; window < features.size() && features[window].question == question; ++window) {
      windows.push_back(pipeline_window(evaluation, window));
    }
    answers.push_back(
        data::find_pipeline_answer(context, windows, task_.tokenizer(), config_.max_answer_length, may_be_none));
  }
  return answers;
}

}  // namespace mylos::tasks
