#include "app/options/parse.hpp"

#include "app/options/consistency.hpp"

#include "core/base/usage_error.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

using Words = std::vector<std::string>;

Arguments parse(const char* command, const Words& words) {
  return parse_arguments(FileReader(), *find_command(command), words);
}

Arguments parse_train(Words words) {
  words.insert(words.begin(), {"--model", "m", "--train", "t", "--output", "o"});
  return parse("train", words);
}

std::string error_of_train(const Words& words) {
  return tests::error_of([&] { parse_train(words); });
}

TEST(Parse, DefaultsAreThoseOfTheInterface) {
  const Arguments arguments = parse_train({});
  EXPECT_EQ(arguments.run.engine.epochs, 2.0);
  EXPECT_EQ(arguments.run.task.batch, 12u);
  EXPECT_EQ(arguments.run.engine.learning_rate, 3e-5);
  EXPECT_EQ(arguments.run.engine.clip, 1.0);
  EXPECT_EQ(tasks::squad_config(arguments.run).max_length, 384u);
  EXPECT_EQ(tasks::squad_config(arguments.run).doc_stride, 128u);
  EXPECT_EQ(tasks::squad_config(arguments.run).n_best, 20u);
  EXPECT_EQ(tasks::squad_config(arguments.run).max_answer_length, 30u);
  EXPECT_EQ(arguments.run.engine.seed, 42u);
}

TEST(Parse, TyposGetASuggestion) {
  EXPECT_EQ(error_of_train({"--lerning_rate", "3"}),
            "train does not have --lerning_rate; did you mean --learning-rate?");
  EXPECT_EQ(error_of_train({"--quux", "3"}), "train does not have --quux");
  EXPECT_EQ(error_of_train({"-x"}), "train does not have -x; options begin with --");
}

TEST(Parse, OptionsOfOtherCommandsNameThem) {
  EXPECT_EQ(error_of_train({"--vocab", "v"}), "train does not have --vocab, which belongs to tokenize, bench");
}

TEST(Parse, MissingValuesAreNamed) {
  EXPECT_EQ(error_of_train({"--epochs", "--batch", "3"}),
            "--epochs needs a value: a number above 0 and at most 100000");
}

TEST(Parse, PositionalArgumentsAreCounted) {
  EXPECT_EQ(error_of_train({"more"}),
            "train: \"more\" is one argument too many; usage: mylos train --model M --train "
            "FILE [--dev FILE] --output DIR [options]");
  EXPECT_EQ(tests::error_of([] { parse("score", {"a"}); }),
            "score: too few arguments; usage: mylos score DATA PREDICTIONS [options]");
}

TEST(Parse, ListsAreSeparatedByCommas) {
  EXPECT_EQ(error_of_train({"--lora_target_modules", "q_proj", "v_proj", "o_proj"}),
            "train: \"v_proj\" is one argument too many; a list is separated by commas: --lora_target_modules "
            "q_proj,v_proj");
  const Arguments spaced = parse_train({"--lora-rank", "2", "--lora-targets", "q_proj, v_proj ,o"});
  EXPECT_THAT(spaced.run.task.adapters.targets, testing::ElementsAre("q_proj", "v_proj", "o"));
  EXPECT_THAT(error_of_train({"--lora-targets", "q, "}), testing::HasSubstr("expected names separated by commas"));
}

TEST(Parse, ThePartsOfTextsThatPeersTrainHaveAnOption) {
  const Words task = {"--task", "language-modeling"};
  EXPECT_EQ(error_of_train({task[0], task[1], "--assistant_only_loss", "True"}),
            "--assistant_only_loss is not supported; use --loss-on assistant, the default for messages, or all");
  EXPECT_EQ(error_of_train({task[0], task[1], "--completion_only_loss", "False"}),
            "--completion_only_loss false is not supported; use --loss-on completion, the default for prompt and "
            "completion, or all");
}

TEST(Parse, WhatACommandNeedsIsNamed) {
  struct Case {
    const char* command;
    Words words;
    const char* needed;
  };
  for (const Case& each :
       {Case{"train", {}, "--model"}, Case{"train", {"--model=m"}, "--train"},
        Case{"train", {"--model=m", "--train=t"}, "--output"}, Case{"eval", {"--model=m", "--output=o"}, "--data"},
        Case{"ask", {"--model=m"}, "--context"}, Case{"tokenize", {}, "--model or --vocab"},
        Case{"prepare", {"--model=m", "--data=d"}, "--output"}}) {
    EXPECT_EQ(tests::error_of([&] { parse(each.command, each.words); }),
              fmt::format("{0} needs {1}; see mylos {0} --help", each.command, each.needed));
  }
}

TEST(Parse, WhatRunJsonCannotRecordIsRefused) {
  EXPECT_EQ(error_of_train({"--output", "run\xff"}),
            "--output: not UTF-8 at byte 3, so run.json cannot record it; rename the file or directory");
  EXPECT_EQ(parse_train({"--output", "\xc3\xa9t\xc3\xa9"}).run.engine.output, "\xc3\xa9t\xc3\xa9");
  EXPECT_NO_THROW(parse("score", {"data\xff.json", "predictions.json"}));
}

TEST(Parse, HelpStopsEverythingElse) {
  EXPECT_TRUE(parse("train", {"--epochs=1", "-h"}).help) << "also where something is missing";
  EXPECT_TRUE(parse("train", {"--quux", "--epochs", "--help", "more"}).help);
  EXPECT_TRUE(parse("ask", {"--json", "-h"}).help);
  EXPECT_FALSE(parse("ask", {"--model=m", "--context", "-h", "--", "--help"}).help);
}

TEST(Parse, ValuesAreShownAsTheyWereTyped) {
  EXPECT_EQ(error_of_train({"--batch==3"}), "--batch =3: expected a whole number from 1 to 1000000");
  EXPECT_EQ(error_of_train({"--batch", "!"}), "--batch !: expected a whole number from 1 to 1000000");
  EXPECT_EQ(error_of_train({"--max_length", "1\n2"}), "--max_length 1\\x0a2: expected a whole number from 1 to 65536");
  EXPECT_EQ(parse_train({"--output", "a=b, c"}).run.engine.output, "a=b, c");
}

TEST(Parse, TheFirstErrorIsTold) {
  EXPECT_EQ(error_of_train({"--quux", "--epochs"}), "train does not have --quux");
  EXPECT_THAT(error_of_train({"--epochs", "--quux"}), testing::StartsWith("--epochs needs a value: "));
  EXPECT_THAT(error_of_train({"--max_epochs", "3", "--quux"}), testing::StartsWith("--max_epochs 3 is not supported"));
  EXPECT_EQ(error_of_train({"--quux=hf_secret", "more"}), "train does not have --quux");
}

TEST(Parse, WhatASwitchDoesNotTakeIsAnArgument) {
  EXPECT_THAT(error_of_train({"--dry-run", "more"}), testing::StartsWith("train: \"more\" is one argument too many"));
  EXPECT_EQ(error_of_train({"--no-overwrite=1"}), "--no-overwrite takes no value");
  EXPECT_EQ(error_of_train({"--no-overwrite", "true"}), "--no-overwrite takes no value");
}

TEST(Parse, OptionsAreKeptInTheirOrder) {
  const Arguments arguments =
      parse_train({"--lr", "1e-3", "--no_overwrite", "--batch=2", "--report_to", "none", "--lr=1e-4"});
  std::vector<Words> words;
  for (const TypedOption& option : arguments.typed) words.push_back(option.words);
  words.erase(words.begin(), words.begin() + 3);
  EXPECT_EQ(words, (std::vector<Words>{{"--lr", "1e-3"}, {"--no_overwrite"}, {"--batch=2"}, {"--lr=1e-4"}}));
  EXPECT_EQ(arguments.typed[3].name, "learning-rate");
  EXPECT_EQ(arguments.run.engine.learning_rate, 1e-4);
}

TEST(Consistency, OneRanksBatchIsTheBatch) {
  EXPECT_EQ(parse_train({"--per_device_train_batch_size=6"}).run.task.batch, 6u);
  const Arguments accumulated = parse_train({"--batch-per-rank=6", "--gradient-accumulation-steps=4"});
  EXPECT_EQ(accumulated.run.task.batch, 24u);
  EXPECT_EQ(accumulated.run.engine.accumulation, 4u);
  EXPECT_EQ(accumulated.run.engine.micro_batch, 0u);
  const Arguments divided = parse_train({"--batch=10", "--gradient_accumulation_steps=4"});
  EXPECT_EQ(divided.run.task.batch, 10u);
  EXPECT_EQ(divided.run.engine.accumulation, 4u);
  EXPECT_EQ(error_of_train({"--batch=4", "--gradient-accumulation-steps=5"}),
            "--gradient-accumulation-steps 5: expected at most the batch, 4");
}

TEST(Consistency, OptionsOfTheSameExcludeEachOther) {
  for (const auto& [one, other] : {std::pair("--batch", "--batch-per-rank"),
                                   {"--micro-batch", "--gradient-accumulation-steps"},
                                   {"--micro-tokens", "--micro-batch"},
                                   {"--micro-tokens", "--gradient-accumulation-steps"},
                                   {"--batch", "--batch-size-per-device"},
                                   {"--batch-size-per-device", "--batch-per-rank"},
                                   {"--batch-size-per-device", "--micro-batch"},
                                   {"--micro-tokens", "--batch-size-per-device"}}) {
    EXPECT_EQ(error_of_train({one, "4", other, "4"}),
              fmt::format("{} and {} exclude each other; give one of them", one, other));
  }
  EXPECT_EQ(error_of_train({"--no-fsdp", "--mode=sharded"}),
            "--no-fsdp and --mode exclude each other; give one of them");
}

TEST(Consistency, WhatIsSaidForARankCountsForEach) {
  const auto on_three = [](const std::vector<std::string>& words) {
    Arguments arguments = parse_train(words);
    resolve_ranks(arguments, 3);
    return arguments.run.task.batch;
  };
  EXPECT_EQ(on_three({"--batch-per-rank=6"}), 18u);
  EXPECT_EQ(on_three({"--batch-per-rank=6", "--gradient-accumulation-steps=4"}), 72u);
  EXPECT_EQ(on_three({"--batch=20", "--gradient-accumulation-steps=2"}), 20u);
  EXPECT_EQ(on_three({"--batch=20", "--micro-batch=5"}), 20u);
}

TEST(Consistency, ABatchSizePerDeviceIsAMicroBatchAndPartOfTheBatch) {
  const auto on_three = [](const std::vector<std::string>& words) {
    Arguments arguments = parse_train(words);
    resolve_ranks(arguments, 3);
    const train::TrainConfig& engine = arguments.run.engine;
    EXPECT_EQ(engine.accumulation, 0u) << "the micro-batch says it";
    return std::pair(arguments.run.task.batch, engine.micro_batch);
  };
  EXPECT_EQ(on_three({"--batch_size_per_device", "6"}), std::pair(18ul, 6ul));
  EXPECT_EQ(on_three({"--batch_size_per_device=6", "--gradient_accumulation_steps=4"}), std::pair(72ul, 6ul));
  EXPECT_THAT(error_of_train({"--batch-size-per-device=6", "--deterministic"}),
              testing::EndsWith("leave out --batch-size-per-device"));
}

TEST(Consistency, NoFsdpIsReplicated) {
  EXPECT_EQ(parse_train({"--no_fsdp"}).run.engine.parallel.strategy, parallel::StrategyKind::replicated);
  EXPECT_EQ(parse_train({"--no_fsdp", "false"}).run.engine.parallel.strategy, std::nullopt);
  EXPECT_EQ(parse("plan", {"--model", "m", "--no_fsdp"}).run.engine.parallel.strategy,
            parallel::StrategyKind::replicated);
  const Words compare = {"--model=m", "--train=t", "--output=o", "--no_fsdp"}, bench = {"batch", "--no_fsdp"};
  EXPECT_EQ(parse("compare", compare).strategies, Words{"replicated"});
  EXPECT_EQ(parse("compare", compare).run.engine.parallel.strategy, std::nullopt);
  EXPECT_EQ(parse("bench", bench).strategies, Words{"replicated"});
  EXPECT_EQ(tests::error_of([] {
              parse("bench", {"batch", "--no_fsdp", "--modes", "sharded"});
            }),
            "--no-fsdp and --modes exclude each other; give one of them");
}

TEST(Consistency, BenchSaysWhatItTakesInPlaceOfABatchPerDevice) {
  const auto error = [](const char* option) {
    return tests::error_of([&] { parse("bench", {"batch", option, "2"}); });
  };
  for (const char* option :
       {"--batch_size_per_device", "--gradient_accumulation_steps", "--per_device_train_batch_size"}) {
    EXPECT_THAT(error(option), testing::HasSubstr("; bench batch takes --batch, the samples of a step on all ranks "
                                                  "together, and tries all micro-batches"));
  }
  EXPECT_THAT(error("--no_fsdp"), testing::Not(testing::HasSubstr("takes --modes"))) << "it has this one";
  EXPECT_THAT(error("--mode"), testing::EndsWith("; bench batch takes --modes"));
}

TEST(Consistency, OptionsThatWouldDoNothingAreErrors) {
  const auto expect_dev = [](const std::string& word, const std::string& other) {
    const std::string name = word.substr(0, word.find('='));
    EXPECT_EQ(error_of_train({word}), name + " needs --dev" + other + ": without it nothing is evaluated");
    EXPECT_EQ(error_of_train({word, "--dev=d"}), "(nothing was thrown)");
  };
  for (const char* word : {"--eval-on-start", "--dev-limit=3"}) expect_dev(word, "");
  for (const char* word : {"--best-by=f1", "--eval-every=5"}) expect_dev(word, ", or --best-by training_loss");
  EXPECT_EQ(error_of_train({"--best-by=training_loss", "--eval-every=5"}), "(nothing was thrown)");
  EXPECT_EQ(error_of_train({"--patience=2", "--min-delta=0.5", "--keep-best=2"}), "(nothing was thrown)");
  EXPECT_EQ(error_of_train({"--min-delta=0.5"}), "--min-delta needs --patience: it decides only when training stops");
  EXPECT_EQ(error_of_train({"--task=question-answering", "--max-length=100", "--doc-stride=100"}),
            "--doc-stride 100: expected less than --max-length, 100");
}

TEST(Consistency, SettingsOfAnOptimizerNeedIt) {
  for (const auto& [name, needed, other] : {std::tuple("--adam-beta1", "adamw", "sgd"),
                                            {"--adam-beta2", "adamw", "sgd"},
                                            {"--adam-epsilon", "adamw", "sgd"},
                                            {"--momentum", "sgd", "adamw"},
                                            {"--nesterov", "sgd", "adamw"},
                                            {"--lion-beta1", "lion", "adamw"},
                                            {"--lion-beta2", "lion", "sgd"}}) {
    const std::string value = std::string(name) == "--nesterov" ? "true" : "0.9";
    EXPECT_EQ(error_of_train({name, value, "--optimizer", other}),
              fmt::format("{0} needs --optimizer {1}, but the optimizer is {2}; leave it out, or give --optimizer {1}",
                          name, needed, other));
    EXPECT_EQ(error_of_train({name, value, "--optimizer", needed}), "(nothing was thrown)");
  }
}

TEST(Consistency, NesterovNeedsMomentum) {
  EXPECT_EQ(error_of_train({"--optimizer=sgd", "--momentum=0", "--nesterov"}),
            "`nesterov` needs a `momentum` above 0; give one, or leave out `nesterov`")
      << "as the engine spells settings without a program";
  EXPECT_EQ(parse_train({"--optimizer=sgd", "--momentum=0"}).run.engine.optimizer.value("momentum"), 0.0);
}

TEST(Consistency, DecayStepsAndTheStepScheduleNeedEachOther) {
  EXPECT_EQ(error_of_train({"--decay-steps=5"}),
            "--decay-steps needs --schedule step, but the schedule is linear; leave it out, or give --schedule step");
  EXPECT_EQ(error_of_train({"--schedule=cosine", "--decay-factor=0.5"}),
            "--decay-factor needs --schedule step, but the schedule is cosine; leave it out, or give --schedule step");
  EXPECT_EQ(error_of_train({"--schedule=step"}),
            "--schedule step needs --decay-steps N,N,...: the steps at which the learning rate is multiplied by "
            "--decay-factor");
  const train::TrainConfig engine = parse_train({"--schedule=step", "--decay-steps=5,9"}).run.engine;
  EXPECT_EQ(engine.decay_steps, (std::vector<std::size_t>{5, 9}));
  EXPECT_EQ(engine.decay_factor, 0.1);
}

TEST(Consistency, SettingsOfASchedulesDecayNeedIt) {
  EXPECT_EQ(
      error_of_train({"--schedule=polynomial", "--decay-fraction=0.2"}),
      "--decay-fraction needs --schedule warmup-stable-decay, but the schedule is polynomial; leave it out, or give "
      "--schedule warmup-stable-decay");
  EXPECT_EQ(error_of_train({"--decay-power=2"}),
            "--decay-power needs --schedule polynomial, but the schedule is linear; leave it out, or give --schedule "
            "polynomial");
  const train::TrainConfig engine =
      parse_train({"--lr-scheduler-type=warmup_stable_decay", "--decay-fraction=0.2"}).run.engine;
  EXPECT_EQ(engine.schedule, nn::ScheduleKind::warmup_stable_decay);
  EXPECT_EQ(engine.decay_fraction, 0.2);
}

TEST(Consistency, TheSmallestLearningRateIsAtMostThePeak) {
  EXPECT_EQ(error_of_train({"--learning-rate=1e-5", "--learning-rate-min=1e-4"}),
            "--learning-rate-min 0.0001: expected at most --learning-rate, 1e-05");
  EXPECT_EQ(error_of_train({"--schedule=constant", "--learning-rate-min=1e-6"}),
            "--learning-rate-min does nothing with --schedule constant; leave one of them out");
  EXPECT_EQ(parse_train({"--lr=1e-4", "--learning-rate-min=1e-4"}).run.engine.learning_rate_min, 1e-4);
}

}  // namespace
}  // namespace mylos::app
