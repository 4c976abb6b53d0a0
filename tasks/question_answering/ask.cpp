#include "core/base/files/text_file.hpp"
#include "core/base/text/python_text.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/text/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "data/squad/pipeline_answer.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/question_answering/excerpt.hpp"
#include "tasks/question_answering/question_answering_kind.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "train/engine/loop/evaluator.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

/// mylos ask: answers questions about a text.
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

/// Answers questions about texts with a model that is loaded once.
class QuestionAnswerer {
 public:
  /// Uses the run's settings for windows and answer length. Errors: those of SquadTask and Evaluator.
  explicit QuestionAnswerer(const RunConfig& run)
      : config_(squad_config(run)),
        task_(FileReader(), run, log_line),
        attention_(choose_attention(*parallel::make_self_communicator(), run, task_, log_line)),
        evaluator_(task_, run.engine.precision, run.engine.gemm,
                   SquadEvaluation::bound_of_batches(config_.max_length)) {}

  /// Returns one answer per question, as transformers' question-answering pipeline does. With the rules of SQuAD 2.0
  /// the answer may be empty (handle_impossible_answer). Errors: std::runtime_error if a text is not UTF-8 or a
  /// question leaves no room for the context.
  std::vector<data::PipelineAnswer> answer(const std::string& context, const std::vector<std::string>& questions) {
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

 private:
  SquadConfig config_;
  SquadTask task_;
  train::AttentionSelection attention_;  ///< of the task's model, before the evaluator asks for it
  train::Evaluator evaluator_;
};

std::string read_context(const std::filesystem::path& path) {
  if (path != "-") return read_text_file(path);
  std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  ensure_utf8(text, "standard input");
  return text;
}

std::string answer_json(const std::string& question, const data::PipelineAnswer& answer, const std::string& context) {
  const nlohmann::ordered_json object = {
      {"question", question},    {"answer", answer.text},
      {"score", answer.score},   {"start", answer.range.begin},
      {"end", answer.range.end}, {"context", answer.text.empty() ? "" : sentence_around(context, answer.range).text()}};
  return object.dump() + "\n";
}

void print_answer(const std::string& question, const data::PipelineAnswer& answer, const std::string& context,
                  bool highlight) {
  if (answer.text.empty()) {
    print(fmt::format("{}\n  no answer  (score {:.3f})\n", question, answer.score));
    return;
  }
  const Excerpt sentence = sentence_around(context, answer.range);
  print(fmt::format("{}\n  {}  (score {:.3f}, characters {} to {})\n  {}", question, on_one_line(answer.text),
                    answer.score, answer.range.begin, answer.range.end, sentence.before));
  if (highlight) print_escapes("\x1b[1;32m");
  print(sentence.answer);
  if (highlight) print_escapes("\x1b[0m");
  print(sentence.after + "\n");
}

/// Returns whether the output is a terminal and NO_COLOR is unset or empty (https://no-color.org).
bool may_highlight() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

/// Returns whether `question` is only white space, of any script.
bool is_blank(std::string_view question) { return python_lstrip(question).empty(); }

/// Calls `answer` with each question that is typed or piped in, one per line. Skips blank lines.
void read_questions(const std::function<void(const std::string&)>& answer) {
  const bool prompts = ::isatty(STDIN_FILENO) == 1;
  std::string line;
  for (std::size_t number = 1;; ++number) {
    if (prompts) std::cerr << "question> " << std::flush;
    if (!std::getline(std::cin, line)) return;
    if (line.ends_with('\r')) line.pop_back();
    ensure_utf8(line, fmt::format("standard input, line {}", number));
    if (is_blank(line)) continue;
    answer(line);
    flush_output();
  }
}

}  // namespace

void ask(const CommandCall& call) {
  const std::vector<std::string>& questions = call.words;
  if (questions.empty() && call.context == "-") {
    throw UsageError("ask: --context - and the questions cannot both come from standard input; name a question");
  }
  for (const std::string& question : questions) {
    ensure_utf8(question, "the question");
    if (is_blank(question))
      throw UsageError("ask: a question is blank; type one, or leave it out to enter questions on standard input");
  }
  const RunConfig& run = call.start();
  const std::string context = read_context(call.context);
  QuestionAnswerer answerer(run);
  const bool highlight = may_highlight();
  const auto show = [&](const std::string& question, const data::PipelineAnswer& answer) {
    if (call.json) {
      print_json_text(answer_json(question, answer, context));
    } else {
      print_answer(question, answer, context, highlight);
    }
  };
  if (questions.empty()) {
    read_questions([&](const std::string& question) { show(question, answerer.answer(context, {question}).front()); });
  } else {
    const std::vector<data::PipelineAnswer> answers = answerer.answer(context, questions);
    for (std::size_t i = 0; i < questions.size(); ++i) show(questions[i], answers[i]);
  }
}

}  // namespace mylos::tasks
