#include "tasks/question_answering/question_answering_kind.hpp"

#include "core/base/options/option_kinds.hpp"
#include "data/squad/features.hpp"
#include "data/squad/squad_files.hpp"
#include "tasks/interface/adapter_options.hpp"
#include "tasks/question_answering/squad_config.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::string_view files = "Model and data", windows = "Windows", answers = "Answers";
constexpr CountRange sequence_length{1, 65'536};  // the model's own limit is checked when the model is read

using OwnOption = Option<SquadConfig>;

OwnOption own(std::string name, std::string placeholder, std::string_view section, std::string_view commands,
              std::string help, OptionTraits traits = {}) {
  return named_option<SquadConfig>(std::move(name), std::move(placeholder), section, commands, std::move(help), traits);
}

OwnOption version_option() {
  const std::string version = "version of SQuAD: 1.1, or 2.0, in which questions may have no answer";
  return choice_option(with_help(own("squad", "VERSION", files, "train eval ask score prepare",
                                     version + "; default: derived from the data", {.from_run = "ask"}),
                                 {{"ask", version + "; default: that of the run that trained the model, else 1.1"}}),
                       {{"1.1", {"v1.1"}}, {"2.0", {"2", "v2", "v2.0"}}}, MYLOS_FIELD(squad));
}

/// Uses the hub's names. The files of the data set become --train and --dev in run.json.
OwnOption dataset_option() {
  OwnOption option = own("dataset", "NAME", files, "train",
                         "squad or squad_v2, as downloaded by `mylos fetch squad` or Hugging Face's datasets; sets "
                         "--train, and --dev unless --do-train is given without --do-eval",
                         {.lays_out = true, .excludes = "train"});
  option.expects = "squad or squad_v2; other data are given with --train and --dev";
  option.choices = {"squad", "squad_v2"};
  option.parse = [](SquadConfig& config, std::string_view text) {
    if (!data::is_squad_name(text)) return false;
    config.dataset = text;
    return true;
  };
  return option;
}

std::vector<OwnOption> data_options() {
  return {
      version_option(),
      path_option(
          own("head", "FILE", files, "train",
              "safetensors file with the initial qa_outputs.weight and .bias; default: those of the model, else "
              "values from Normal(0, 0.02) and --seed"),
          MYLOS_FIELD(head)),
      path_option(own("order", "FILE", files, "train",
                      "JSON lines, one step per line: a list of [question id, window index]; replaces shuffling",
                      {.excludes = "train-fraction"}),
                  MYLOS_FIELD(order)),
      switch_option(own("strict", "", files, "train eval prepare",
                        "fail on an answer whose offset does not match its text, instead of leaving it out",
                        {.on_resume = OnResume::free}),
                    MYLOS_FIELD(strict)),
      switch_option(
          own("repair-offsets", "", files, "train prepare",
              "move answers whose offset is one or two characters off to their text, instead of leaving them out"),
          MYLOS_FIELD(repair_offsets)),
      switch_option(own("answerable-only", "", files, "train", "train on questions with an answer only"),
                    MYLOS_FIELD(answerable_only)),
      dataset_option(),
  };
}

std::vector<OwnOption> window_options() {
  constexpr std::string_view reads_questions = "train eval ask prepare bench plan";
  return {
      count_option(own("max-length", "N", windows, reads_questions, "largest number of tokens in a window",
                       {.lays_out = true, .from_run = "eval ask", .is_shown = true}),
                   sequence_length, MYLOS_FIELD(max_length)),
      count_option(own("doc-stride", "N", windows, reads_questions, "tokens that adjacent windows share",
                       {.from_run = "eval ask"}),
                   sequence_length, MYLOS_FIELD(doc_stride)),
      enumeration_option(
          own("long", "WHAT", windows, reads_questions,
              "contexts longer than a window: split (further windows have the rest) or truncate (the rest is left out)",
              {.from_run = "eval ask"}),
          {{"split", {}}, {"truncate", {}}}, MYLOS_FIELD(truncate),
          [](std::string_view name) { return name == data::long_contexts(true); }, data::long_contexts),
      switch_option(
          own("exact-labels", "", windows, "train prepare bench",
              "label an answer that starts at the last token of a window there, not at the following [SEP] as run_qa "
              "does"),
          MYLOS_FIELD(exact_labels)),
  };
}

std::vector<OwnOption> answer_options() {
  constexpr std::string_view scoring = "train eval";
  return {
      count_option(own("n-best", "N", answers, scoring,
                       "number of best start and end positions kept per window, and of answers kept per question",
                       {.from_run = "eval"}),
                   {1, 10'000}, MYLOS_FIELD(n_best)),
      count_option(own("max-answer-length", "N", answers, "train eval ask", "largest number of tokens in an answer",
                       {.from_run = "eval ask"}),
                   {1, 65'536}, MYLOS_FIELD(max_answer_length)),
      real_option(
          own("null-threshold", "X", answers, scoring,
              "SQuAD 2.0: predict no answer if its score exceeds the best answer's by more than this, in logits",
              {.from_run = "eval"}),
          {-unbounded, unbounded}, MYLOS_FIELD(null_threshold)),
      path_option(
          own("na-prob-file", "FILE", answers, "score",
              "JSON file {question id: probability that it has no answer}; also prints the best thresholds (SQuAD "
              "2.0)"),
          MYLOS_FIELD(no_answer_probabilities)),
      real_option(own("na-prob-thresh", "X", answers, "score",
                      "count a question as unanswered if its probability exceeds this (SQuAD 2.0)"),
                  {-unbounded, unbounded}, MYLOS_FIELD(no_answer_threshold)),
  };
}

}  // namespace

std::vector<Option<RunConfig>> question_answering_options() {
  std::vector<Option<RunConfig>> all;
  for (const auto part : {data_options, window_options, answer_options}) append_options(all, part());
  std::ranges::move(adapter_options(), std::back_inserter(all));
  return all;
}

}  // namespace mylos::tasks
