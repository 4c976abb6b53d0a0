#include "app/options/options.hpp"
#include "app/options/tool_options.hpp"

#include "data/images/synthetic_images.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

/// Options for models and data, of every task.
namespace mylos::app {
namespace {

constexpr std::string_view files = "Model and data";

Option model_option() {
  Option option = named(
      "model", "M", files,
      "train eval ask prepare bench/gemm bench/step bench/batch bench/tokenize checkpoint/export plan doctor "
      "generate tokenize classify merge",
      "Hugging Face model directory, output directory of a run (its best/ is used), directory of an adapter (with "
      "its base), or name of a model from `mylos fetch`",
      {.lays_out = true, .is_shown = true});
  option.expects = "a directory or a name";
  option.parse = [](Arguments& arguments, std::string_view text) {
    if (!text.empty()) arguments.model = text;
    return !text.empty();
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    if (arguments.model.empty()) return nullptr;
    std::error_code ignored;  // a path that cannot be inspected is a name
    if (!std::filesystem::is_directory(arguments.model, ignored)) return arguments.model;
    return std::filesystem::absolute(arguments.model).lexically_normal().string();
  };
  return option;
}

/// An option for data that are a file, a directory, or generated ("synthetic:COUNTxHxW"), which is not a path.
template <class Field>
Option path_or_drawn_option(Option option, Field field) {
  option = path_option(std::move(option), field);
  option.print = [print = option.print, field](const Arguments& arguments) -> nlohmann::ordered_json {
    const std::string text = field(arguments).string();
    return data::is_synthetic(text) ? nlohmann::ordered_json(text) : print(arguments);
  };
  return option;
}

/// The option --task. It is read before any other option, because the task decides which options exist.
Option task_option() {
  std::vector<Choice> choices;
  for (const tasks::TaskKind* kind : tasks::task_kinds()) choices.push_back({std::string(kind->name()), {}});
  Option option = named("task", "NAME", files, "train eval prepare bench plan merge",
                        describe(choices) + "; default: derived from model_type in the model's config.json");
  option.expects = describe(choices);
  option.choices = names_of(choices);
  option.is_derived = true;
  option.parse = [choices](Arguments&, std::string_view text) { return parse_choice(text, choices).has_value(); };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json { return arguments.task->name(); };
  return option;
}

}  // namespace

std::vector<Option> data_options(const tasks::TaskKind& task) {
  const tasks::DataTexts texts = task.data_texts();
  const std::string trained(texts.trained), entries(texts.entries);
  constexpr std::string_view data_commands = "eval prepare bench/step bench/batch bench/tokenize plan";
  return {
      model_option(),
      task_option(),
      path_or_drawn_option(named("train", "FILE", files, "train", trained + " to train on", {.lays_out = true}),
                           MYLOS_FIELD(run.task.train)),
      path_or_drawn_option(named("dev", "FILE", files, "train", trained + " to evaluate on; default: no evaluation"),
                           MYLOS_FIELD(run.task.dev)),
      path_or_drawn_option(named("data", "FILE", files, data_commands, std::string(texts.read)), MYLOS_FIELD(data)),
      path_option(named("context", "FILE", files, "ask", "text that contains the answers; - reads standard input"),
                  MYLOS_FIELD(ask->context)),
      path_option(
          with_help(named("output", "PATH", files, "train eval prepare checkpoint/export doctor report sweep merge",
                          "directory for the results"),
                    {{"prepare", "output file (.h5 or .jsonl)"},
                     {"checkpoint merge", "directory for the exported model"},
                     {"doctor", "directory to test; default: the current one"},
                     {"report", "output file; default: report.html"}}),
          MYLOS_FIELD(run.engine.output)),
      count_option(named("train-limit", "N", files, "train prepare",
                         "use only the first N " + entries + " of the training file"),
                   {}, MYLOS_FIELD(run.task.train_limit)),
      real_option(named("train-fraction", "X", files, "train",
                        "train on a random part of the samples, the same in every epoch, determined by --seed"),
                  {.smallest = 0.0, .largest = 1.0, .open_below = true}, MYLOS_FIELD(run.task.train_fraction)),
      count_option(
          named("dev-limit", "N", files, "train eval", "use only the first N " + entries + " of the evaluation file",
                {.needs = {"dev", "", "without it nothing is evaluated"}}),
          {}, MYLOS_FIELD(run.task.dev_limit)),
      unrecorded(
          switch_option(named("do-train", "", files, "train",
                              "accepted for compatibility with scripts of transformers; mylos train always trains"),
                        MYLOS_FIELD(run.task.do_train))),
      unrecorded(switch_option(named("do-eval", "", files, "train",
                                     "evaluate during training; needs --dev, or a --dataset with evaluation data"),
                               MYLOS_FIELD(run.task.do_eval))),
  };
}

}  // namespace mylos::app
