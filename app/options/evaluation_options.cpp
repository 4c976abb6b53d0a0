#include "app/options/options.hpp"
#include "core/base/options/option_values.hpp"
#include "train/engine/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

/// Options of `mylos train` for judging models during the run.
namespace mylos::app {
namespace {

constexpr std::string_view evaluation = "Evaluation";

constexpr OptionNeed of_samples = {"dev", "", "without it nothing is evaluated"};
constexpr OptionNeed of_metric = {"dev", "", "without it nothing is evaluated", {"best-by", train::training_loss_name}};

std::vector<Choice> metric_choices(const tasks::TaskKind& task) {
  std::vector<Choice> choices = task.metrics();
  choices.push_back({train::training_loss_name, {"train_loss"}});
  return choices;
}

/// A plain number counts steps; with its unit, epochs.
Option eval_every_option() {
  Option option = named("eval-every", "N|Nepochs", evaluation, "train",
                        "interval between evaluations: a number of steps, or of epochs (10epochs); default: one epoch",
                        {.needs = of_metric});
  option.expects = "a number of steps, or of epochs: 10epochs";
  option.parse = [](Arguments& arguments, std::string_view text) {
    const auto unit = text.find_first_not_of("0123456789");
    const std::string_view name = unit == std::string_view::npos ? std::string_view() : text.substr(unit);
    const auto count = parse_count(text.substr(0, unit), {});
    if (!count || (!name.empty() && name != "epochs" && name != "epoch")) return false;
    arguments.run.engine.evaluate_every = name.empty() ? *count : 0;
    arguments.run.engine.evaluate_every_epochs = name.empty() ? 0 : *count;
    return true;
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const train::TrainConfig& engine = arguments.run.engine;
    if (engine.evaluate_every_epochs > 0) return fmt::format("{}epochs", engine.evaluate_every_epochs);
    return engine.evaluate_every == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(engine.evaluate_every);
  };
  option.copy = [](Arguments& arguments, const Arguments& source) {
    arguments.run.engine.evaluate_every = source.run.engine.evaluate_every;
    arguments.run.engine.evaluate_every_epochs = source.run.engine.evaluate_every_epochs;
  };
  return option;
}

}  // namespace

std::vector<Option> evaluation_options(const tasks::TaskKind& task) {
  return {
      eval_every_option(),
      switch_option(named("eval-on-start", "", evaluation, "train", "also evaluate before the first step",
                          {.on_resume = OnResume::free, .needs = of_samples}),
                    MYLOS_FIELD(run.engine.evaluate_on_start)),
      choice_option(named("best-by", "METRIC", evaluation, "train",
                          "metric that selects the model in best/: " + describe(metric_choices(task)) +
                              "; training_loss is the mean over the steps since the last evaluation",
                          {.needs = of_metric}),
                    metric_choices(task), MYLOS_FIELD(run.engine.best.by)),
      count_or_unset_option(
          named("patience", "N", evaluation, "train",
                "number of evaluations without an improvement after which training stops, or of epochs by the training "
                "loss without --dev; default: no early stopping"),
          {}, MYLOS_FIELD(run.engine.best.patience)),
      real_option(named("min-delta", "X", evaluation, "train",
                        "smallest change of the metric that counts as an improvement for --patience: more than X",
                        {.needs = {"patience", "", "it decides only when training stops"}}),
                  {0, unbounded}, MYLOS_FIELD(run.engine.best.min_delta)),
      count_option(
          named("keep-best", "K", evaluation, "train",
                "number of best models to keep: best/, and best-models/STEP/ for the others; without --dev, by the "
                "training loss of each epoch",
                {.on_resume = OnResume::unfinished}),
          {1, 1'000}, MYLOS_FIELD(run.engine.best.keep)),
  };
}

}  // namespace mylos::app
