#include "app/options/recipes.hpp"

#include "app/options/consistency.hpp"
#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/usage_error.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/strategy_kind.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/update_control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Arguments parse_with(const std::string& recipe, const Words& more = {}, const char* command = "train") {
  Words words = {"--model", "m", "--train", "t", "--output", "o", "--recipe", recipe};
  words.insert(words.end(), more.begin(), more.end());
  return parse_arguments(FileReader(), *find_command(command), words);
}

std::string error_with(const std::string& recipe, const Words& more = {}) {
  return tests::error_of([&] { parse_with(recipe, more); });
}

/// Returns the value of the option in run.json.
std::string setting(const Arguments& arguments, const char* option) {
  return plain_text(find_option(option, *arguments.task)->print(arguments));
}

TEST(Recipes, SetWhatTheProgramsHave) {
  using Settings = std::map<const char*, const char*>;
  const std::map<std::string, Settings> programs = {
      {"lightning-fsdp-squad", {{"long", "truncate"}, {"max-length", "384"}, {"precision", "half"}, {"epochs", "3.0"}}},
      {"lightning-ddp-squad", {{"train-limit", "10000"}, {"mode", "replicated"}, {"epochs", "4.0"}}},
      {"pauls-squad2", {{"squad", "2.0"}, {"long", "truncate"}, {"adam-epsilon", "1e-06"}, {"epochs", "2.0"}}},
      {"ncar-ddp", {{"augment", "crop-flip"}, {"mode", "replicated"}, {"epochs", "100.0"}}},
      {"ncar-fsdp", {{"augment", "crop-flip"}, {"stem", "cifar"}, {"mode", "sharded"}, {"epochs", "10.0"}}},
      {"chess-fsdp", {{"long", "truncate"}, {"max-length", "512"}, {"precision", "bfloat16"}, {"epochs", "1.0"}}},
      {"run_qa", {{"max-length", "384"}, {"doc-stride", "128"}, {"long", "split"}, {"epochs", "3.0"}}},
      {"run_clm", {{"max-length", "1024"}, {"epochs", "3.0"}}},
  };
  const std::map<std::string, std::size_t> batches = {{"lightning-fsdp-squad", 16},
                                                      {"lightning-ddp-squad", 4},
                                                      {"pauls-squad2", 8},
                                                      {"ncar-ddp", 256},
                                                      {"ncar-fsdp", 64},
                                                      {"chess-fsdp", 8},
                                                      {"run_qa", 8},
                                                      {"run_clm", 8}};
  ASSERT_EQ(programs.size() + 1, recipe_names().size()) << "and list";
  for (const auto& [name, settings] : programs) {
    const Arguments arguments = parse_with(name);
    EXPECT_EQ(setting(arguments, "recipe"), name);
    EXPECT_TRUE(arguments.batch_is_per_rank) << name;
    EXPECT_EQ(arguments.run.task.batch, batches.at(name)) << name;
    for (const auto& [option, value] : settings) EXPECT_EQ(setting(arguments, option), value) << name << ' ' << option;
    EXPECT_THAT(arguments.remarks, Contains(HasSubstr("--recipe " + name + " sets --"))) << name;
  }
}

/// Values of a formula that the recorder computes as well.
template <class Function>
tests::Values formula(Function function, std::size_t count, double scale) {
  tests::Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * function(static_cast<double>(i + 1));
  return values;
}

/// The recorder's tensors: a matrix, which every program decays, and a vector.
ParameterTable two_tensors() {
  ParameterTable::Builder builder;
  builder.unit("unit");
  builder.tensor("matrix", {2, 3}, {});
  builder.tensor("vector", {4}, {}, {.decay = false});
  return builder.build();
}

tests::Values of_both(const tests::Values& matrix, const tests::Values& vector) {
  tests::Values both = matrix;
  both.insert(both.end(), vector.begin(), vector.end());
  return both;
}

/// Returns the tensors after the steps of a run with this optimizer and schedule.
tests::Values trained(const train::TrainConfig& config, std::size_t steps) {
  const ParameterTable table = two_tensors();
  const auto sine = [](double x) { return std::sin(x); };
  const auto weights = tests::device_vector<float>(of_both(formula(sine, 6, 1.0), formula(sine, 4, 1.0)));
  const Vector<float> gradients("test::gradients", weights.size());
  const std::vector<ParameterSlice> slices = {{0, 0, weights.size(), weights, gradients}};
  const auto optimizer = nn::make_optimizer(config.optimizer, table, slices);
  const nn::LearningRateSchedule schedule = train::learning_rate_schedule(config, steps);
  for (std::size_t step = 0; step < steps; ++step) {
    const auto wave = [&](double x) { return std::cos(x * static_cast<double>(step + 1)); };
    const tests::Values values = of_both(formula(wave, 6, 2.0), formula(wave, 4, 2.0));
    Kokkos::deep_copy(gradients, tests::device_vector<float>(values));
    double squares = 0.0;
    for (const double value : values) squares += value * value;
    const double scale = config.clip > 0.0 ? std::min(1.0, config.clip / (std::sqrt(squares) + 1e-6)) : 1.0;
    const nn::UpdateSettings settings{.step = step, .learning_rate = static_cast<float>(schedule.at(step))};
    optimizer->update(ExecutionSpace(), settings, tests::update_control(scale));
  }
  return tests::host_values(weights);
}

TEST(Recipes, StepAsTheOptimizersAndSchedulesOfTheProgramsDo) {
  std::istringstream lines(read_text_file(tests::golden_data() / "recipe_steps.jsonl"));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const nlohmann::json recorded = nlohmann::json::parse(line);
    const std::string name = recorded["recipe"];
    const tests::Values values = trained(parse_with(name).run.engine, recorded["steps"]);
    tests::expect_near(values, recorded["values"].get<tests::Values>(), 2e-6, name.c_str());
  }
  EXPECT_EQ(count + 1, recipe_names().size()) << "and list";
}

TEST(Recipes, LoseAgainstTheCommandLine) {
  const Arguments arguments =
      parse_with("run_qa", {"--batch", "12", "--learning_rate", "3e-5", "--bf16", "--num_train_epochs", "2"});
  EXPECT_EQ(arguments.run.task.batch, 12u);
  EXPECT_FALSE(arguments.batch_is_per_rank);
  EXPECT_EQ(arguments.run.engine.learning_rate, 3e-5);
  EXPECT_EQ(arguments.run.engine.epochs, 2.0);
  EXPECT_EQ(arguments.run.engine.precision, Precision::bfloat16);
  const Arguments other = parse_with("ncar-ddp", {"--optimizer", "adamw", "--use_fsdp"});
  EXPECT_EQ(other.run.engine.parallel.strategy, parallel::StrategyKind::sharded);
  EXPECT_EQ(other.run.engine.optimizer.name, "adamw");
  EXPECT_EQ(parse_with("chess-fsdp", {"--batch", "64"}).run.task.batch, 64u);
  for (const char* cut : {"--micro-batch", "--micro-tokens"}) {
    const Arguments cut_anew = parse_with("chess-fsdp", {cut, "4"});
    EXPECT_EQ(cut_anew.run.task.batch, 8u) << cut;
    EXPECT_EQ(cut_anew.run.engine.accumulation, 0u) << cut;
  }
  EXPECT_EQ(parse_with("chess-fsdp", {"--gradient_accumulation_steps", "4"}).run.task.batch, 4u);
  EXPECT_EQ(parse_with("chess-fsdp", {"--bf16", "false"}).run.engine.precision, Precision::float32);
  EXPECT_EQ(parse_with("ncar-fsdp", {"--use_fsdp", "false"}).run.engine.parallel.strategy, std::nullopt);
}

/// DDP normalises over the batch of each process.
TEST(Recipes, NormaliseOverTheBatchOfARank) {
  Arguments arguments = parse_with("ncar-ddp", {"--batch_size", "128"});
  EXPECT_EQ(setting(arguments, "batch-norm-group"), "rank");
  resolve_ranks(arguments, 2);
  EXPECT_EQ(arguments.run.task.batch, 256u);
  EXPECT_EQ(setting(arguments, "batch-norm-group"), "128");
}

TEST(Recipes, EvaluateOnlyIfThereIsSomethingToEvaluate) {
  EXPECT_EQ(parse_with("ncar-ddp").run.engine.evaluate_every_epochs, 0u);
  EXPECT_EQ(parse_with("ncar-ddp", {"--dev", "d"}).run.engine.evaluate_every_epochs, 10u);
  EXPECT_EQ(parse_with("lightning-ddp-squad", {"--dev", "d"}).run.task.dev_limit, 500u);
  EXPECT_EQ(parse_with("lightning-ddp-squad").run.task.dev_limit, std::nullopt);
  EXPECT_THAT(parse_with("ncar-ddp").remarks, Contains(Not(HasSubstr("--eval-every"))));
}

TEST(Recipes, BelongToATask) {
  EXPECT_EQ(parse_with("chess-fsdp").task->name(), "language-modeling");
  EXPECT_EQ(error_with("chess-fsdp", {"--task", "question-answering"}),
            "--recipe chess-fsdp belongs to --task language-modeling, and this is a run of question answering");
}

TEST(Recipes, AreKnownByTheirNames) {
  EXPECT_EQ(error_with("run-qa"),
            "--recipe run-qa: there is no such recipe; did you mean run_qa? (mylos train --recipe list)");
  EXPECT_EQ(error_with("x\n"), "--recipe x\\x0a: there is no such recipe (mylos train --recipe list)");
  EXPECT_EQ(error_with("run_qa", {"--config", "run.json"}),
            "--recipe and --config exclude each other; give one of them");
}

TEST(Recipes, AreListed) {
  for (const Words& words : {Words{"--recipe", "list"}, Words{"--recipe=list", "--epochs", "3"}}) {
    EXPECT_TRUE(asks_for_recipes(words));
  }
  EXPECT_FALSE(asks_for_recipes(Words{"--recipe", "run_qa", "list"}));
  for (const std::string& name : recipe_names()) {
    if (name == "list") continue;
    EXPECT_THAT("\n" + list_of_recipes(), AllOf(HasSubstr("\n" + name + ": "), Not(HasSubstr("\n\n")))) << name;
  }
}

TEST(Recipes, AreThoseOfCompare) {
  EXPECT_EQ(parse_with("lightning-ddp-squad", {}, "compare").run.engine.learning_rate, 3e-5);
}

}  // namespace
}  // namespace mylos::app
