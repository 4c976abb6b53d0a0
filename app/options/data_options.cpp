#include "app/options/option_kinds.hpp"

#include "data/squad/squad_files.hpp"

/// Options of what is read and how it is cut into windows.
namespace mylos::app {
namespace {

constexpr std::string_view files = "Model and data", windows = "Windows";
constexpr CountRange sequence_length{1, 65'536};  // the model's own limit is checked when it is read

Option model_option() {
  Option option =
      named("model", {"model-name-or-path"}, "M", files,
            train_command | eval_command | ask_command | prepare_command | bench_command | checkpoint_command |
                plan_command | doctor_command,
            "a Hugging Face directory, a run's output directory (its best/), or a name that `mylos fetch` got");
  option.expects = "a directory or a name";
  option.parse = [](Arguments& arguments, std::string_view text) {
    if (!text.empty()) arguments.model = text;
    return !text.empty();
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    if (arguments.model.empty()) return nullptr;
    std::error_code ignored;  // what cannot be looked at is a name
    if (!std::filesystem::is_directory(arguments.model, ignored)) return arguments.model;
    return std::filesystem::absolute(arguments.model).lexically_normal().string();
  };
  return option;
}

Option squad_option() {
  Option option =
      named("squad", {}, "VERSION", files, train_command | eval_command | ask_command | score_command | prepare_command,
            "1.1 or 2.0, whose rules hold (2.0: a question may have no answer); default: judged from the data, in ask "
            "that of the run that --model names, else 1.1");
  return choice_option(
      std::move(option), {{"1.1", {"v1.1"}}, {"2.0", {"2", "v2", "v2.0"}}},
      [](auto& a) -> auto& { return a.run.squad.squad; });
}

/// The hub's names; its files become --train and --dev, which run.json records.
Option dataset_option() {
  Option option = named("dataset", {"dataset-name"}, "NAME", files, train_command,
                        "squad or squad_v2, as `mylos fetch squad` or Hugging Face's datasets got them: stands for "
                        "--train, and for --dev unless --do-train is given without --do-eval");
  option.expects = "squad or squad_v2; other data are given with --train and --dev";
  option.choices = {"squad", "squad_v2"};
  option.parse = [](Arguments& arguments, std::string_view text) {
    if (!data::is_squad_name(text)) return false;
    arguments.dataset = text;
    return true;
  };
  return option;
}

/// run_qa's switch for the rules of SQuAD 2.0.
Option rules_option() {
  Option option = named("version-2-with-negative", {}, "", files, train_command, "the same as --squad 2.0");
  option.expects = "nothing, true or false";
  option.parse = [](Arguments& arguments, std::string_view text) {
    const auto value = parse_truth(text);
    if (value && *value) arguments.run.squad.squad = "2.0";
    return value.has_value();
  };
  return option;
}

std::vector<Option> run_qa_options() {
  return {
      dataset_option(),
      rules_option(),
      unrecorded(switch_option(
          named("do-train", {}, "", files, train_command, "as run_qa is told; train always does"),
          [](auto& a) -> auto& { return a.do_train; })),
      unrecorded(switch_option(
          named("do-eval", {}, "", files, train_command, "evaluate too: needs --dev, or --dataset, which has one"),
          [](auto& a) -> auto& { return a.do_eval; })),
  };
}

}  // namespace

std::vector<Option> data_options() {
  constexpr unsigned data_commands = eval_command | prepare_command | bench_command | plan_command;
  constexpr unsigned reads_questions =
      train_command | eval_command | ask_command | prepare_command | bench_command | plan_command;
  std::vector<Option> options = {
      model_option(),
      path_option(
          named("train", {"train-file"}, "FILE", files, train_command, "questions.json or features.h5 to train on"),
          [](auto& a) -> auto& { return a.run.squad.train; }),
      path_option(
          named("dev", {"validation-file"}, "FILE", files, train_command,
                "questions.json or features.h5 to evaluate on; without it nothing is scored"),
          [](auto& a) -> auto& { return a.run.squad.dev; }),
      path_option(
          named("data", {}, "FILE", files, data_commands, "questions.json, or features.h5 where eval reads it"),
          [](auto& a) -> auto& { return a.data; }),
      path_option(
          named("context", {}, "FILE", files, ask_command, "the text that holds the answers; - reads standard input"),
          [](auto& a) -> auto& { return a.context; }),
      path_option(
          named("output", {"output-dir"}, "PATH", files,
                train_command | eval_command | prepare_command | checkpoint_command | doctor_command | report_command,
                "directory for results, or for a model; of prepare a file, .h5 or .jsonl; of doctor what is tried, "
                "default: the current one; of report a file, default: report.html"),
          [](auto& a) -> auto& { return a.run.engine.output; }),
      squad_option(),
      path_option(
          named("head", {}, "FILE", files, train_command,
                "safetensors with qa_outputs.weight and .bias to begin from; default: the model's own, else "
                "Normal(0, 0.02) from the seed"),
          [](auto& a) -> auto& { return a.run.squad.head; }),
      path_option(
          named("order", {}, "FILE", files, train_command,
                "JSON lines, one step a line: a list of [question id, window index]; replaces shuffling"),
          [](auto& a) -> auto& { return a.run.squad.order; }),
      count_option(
          named("train-limit", {"max-train-samples"}, "N", files, train_command | prepare_command,
                "take only the first N questions of the training file"),
          {}, [](auto& a) -> auto& { return a.run.squad.train_limit; }),
      count_option(
          named("dev-limit", {"max-eval-samples"}, "N", files, train_command | eval_command,
                "take only the first N questions of the evaluation file"),
          {}, [](auto& a) -> auto& { return a.run.squad.dev_limit; }),
      switch_option(
          named("strict", {}, "", files, train_command | eval_command | prepare_command,
                "an answer whose offset does not match its text is an error, not a counted omission"),
          [](auto& a) -> auto& { return a.run.squad.strict; }),
      count_option(
          named("max-length", {"max-seq-length"}, "N", windows, reads_questions, "tokens of a window at most"),
          sequence_length, [](auto& a) -> auto& { return a.run.squad.max_length; }),
      count_option(
          named("doc-stride", {}, "N", windows, reads_questions, "tokens that neighbouring windows share"),
          sequence_length, [](auto& a) -> auto& { return a.run.squad.doc_stride; }),
      switch_option(
          named("exact-labels", {}, "", windows, train_command | prepare_command | bench_command,
                "label an answer that starts at a window's last token there, not as run_qa does"),
          [](auto& a) -> auto& { return a.run.squad.exact_labels; }),
  };
  for (Option& option : run_qa_options()) options.push_back(std::move(option));
  return options;
}

}  // namespace mylos::app
