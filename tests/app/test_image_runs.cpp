#include "app/report/html.hpp"
#include "core/base/process/subprocess.hpp"
#include "data/images/encode_png.hpp"
#include "tests/app/image_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

/// ResNets on images through the program: training, evaluation, resumption, prepared files, plans and single images.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

TEST_F(ImageRuns, TrainWritesWhatTheInterfaceSays) {
  const ProgramRun run = train(run_, {"--epochs", "6", "--eval-every", "2epochs", "--best-by", "accuracy"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, AllOf(HasSubstr("has no weights: the model is initialised with --seed"),
                                HasSubstr("41 images of 10 labels, 12 x 12 pixels, BatchNorm over groups of 4"),
                                HasSubstr("30 steps x batch 9 = 6 epochs; micro-batch 9 images in 2 groups")));
  const json record = read_json(run_ / "run.json");
  EXPECT_EQ(record["task"], "image-classification");
  EXPECT_EQ(record["optimizer"], "sgd");
  EXPECT_EQ(record["learning-rate"], 0.1);
  EXPECT_EQ(record["clip"], 0.0);
  EXPECT_EQ(record["eval-every"], "2epochs");
  EXPECT_EQ(record["resolved"]["counts"], "images");
  EXPECT_EQ(record["resolved"]["batch"], 9) << "the 41st image joins the step before";
  EXPECT_EQ(record["resolved"]["micro-batch"], 9);
  EXPECT_THAT(read_file(run_ / "run.json"),
              HasSubstr("\n    \"label-names\": [\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"],\n"));
  const std::vector<json> steps = records_of(run_, "step"), evaluations = records_of(run_, "evaluation");
  ASSERT_EQ(steps.size(), 30u);
  EXPECT_EQ(steps[0]["images"], 8);
  EXPECT_EQ(steps[0]["groups"], 2);
  EXPECT_EQ(steps[4]["images"], 9);
  EXPECT_TRUE(steps[0].contains("images_per_second"));
  ASSERT_EQ(evaluations.size(), 3u);
  EXPECT_EQ(evaluations.back()["accuracy"], 1.0) << "bright columns are easy";
  const json results = read_json(run_ / "results.json");
  EXPECT_EQ(json::parse(run.output), results);
  EXPECT_EQ(results["images"], 20);
  std::istringstream lines(read_file(run_ / "predictions.jsonl"));
  Words predictions;
  for (std::string line; std::getline(lines, line);) predictions.push_back(line);
  ASSERT_EQ(predictions.size(), 20u);
  EXPECT_THAT(predictions[13], StartsWith(R"({"index":13,"label":"3","predicted":"3","probability":)"));
  EXPECT_EQ(read_json(run_ / "best/config.json")["id2label"]["7"], "7");
  EXPECT_EQ(read_json(run_ / "best/preprocessor_config.json")["size"]["shortest_edge"], 12);
}

TEST_F(ImageRuns, ReportShowsTheWorstMistakesAsPictures) {
  const fs::path page = directory_ / "report.html";
  const auto page_of = [&] {
    const ProgramRun report = run_mylos({"report", run_, "--output", page, "--overwrite"});
    EXPECT_EQ(report.exit_code, 0) << report.errors;
    const ProcessResult parsed = run_process(
        {"python3", "-c", "import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])", page.string()});
    EXPECT_EQ(parsed.exit_code, 0) << parsed.errors;
    return read_file(page);
  };
  ASSERT_EQ(train(run_, {"--steps", "1", "--eval-every", "1"}).exit_code, 0);
  const json kept = read_json(run_ / "evaluations/1.json");
  const std::size_t wrong = kept["wrong"], shown = kept["worst"].size();
  EXPECT_EQ(kept["images"], 20);
  ASSERT_GT(wrong, 5u) << "one step learns little";
  EXPECT_EQ(shown, std::min<std::size_t>(wrong, 16));
  for (std::size_t i = 1; i < shown; ++i) EXPECT_LE(kept["worst"][i]["loss"], kept["worst"][i - 1]["loss"]);
  const json& worst = kept["worst"][0];
  const std::size_t index = worst["index"];
  EXPECT_EQ(worst["label"], std::to_string(index % 10));
  EXPECT_NE(worst["label"], worst["predicted"]);

  const std::string text = page_of(), address = "src=\"data:image/png;base64,";
  EXPECT_THAT(text, AllOf(HasSubstr(std::to_string(wrong) + " of 20 images (step 1, the best evaluation)"),
                          HasSubstr("<dt>label</dt><dd>" + worst["label"].get<std::string>() +
                                    "</dd><dt>predicted</dt><dd>" + worst["predicted"].get<std::string>() + " <"),
                          HasSubstr("<dd>number " + std::to_string(index) + "</dd>")));
  std::size_t pictures = 0;
  for (std::size_t at = text.find("src="); at != std::string::npos; at = text.find("src=", at + 1), ++pictures) {
    EXPECT_EQ(text.substr(at, address.size()), address);
  }
  EXPECT_EQ(pictures, shown);
  const std::string digit = small_digit(index, 12);
  const data::Image first{{12, 12, 1}, {digit.begin(), digit.end()}};
  EXPECT_THAT(text, HasSubstr(address + app::base64_text(data::encode_png(first)))) << "the worst one's picture";

  write_small_digits(digits_, 41, 19);
  EXPECT_THAT(page_of(), AllOf(HasSubstr("The pictures are not shown: " + digits_.string() + " has changed"),
                               Not(HasSubstr("src="))));
  fs::remove_all(digits_);
  EXPECT_THAT(page_of(), HasSubstr("digits no longer exists"));
  write_file(run_ / "evaluations/1.json", "{}");
  EXPECT_THAT(page_of(), AllOf(HasSubstr("evaluations/1.json"), HasSubstr("What is missing")));
}

TEST_F(ImageRuns, AReportOfPicturesShrinksLargeOnesAndNamesDamagedOnes) {
  write_pictures();
  data::Image wide{{30, 600, 3}, {}};
  wide.pixels.resize(wide.shape.size(), 77);
  for (const char* file : {"cats/1.png", "cats/2.png", "dogs/1.png", "dogs/2.png"}) {
    write_file(pictures_ / file, data::encode_png(wide));
  }
  const ProgramRun trained = train(run_, {"--arch", "resnet18", "--image-size", "16", "--steps", "1", "--batch", "4",
                                          "--learning-rate", "1e-6",  // BatchNorm of equal images amplifies rounding
                                          "--train", pictures_, "--dev", pictures_});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const json worst = read_json(run_ / "evaluations/1.json")["worst"];
  ASSERT_GE(worst.size(), 1u) << "equal pictures of two labels";
  data::Image fitted{{11, 224, 3}, {}};
  fitted.pixels.resize(fitted.shape.size(), 77);
  const auto page = [&] {
    const ProgramRun report = run_mylos({"report", run_, "--output", directory_ / "r.html", "--overwrite"});
    EXPECT_EQ(report.exit_code, 0) << report.errors;
    return read_file(directory_ / "r.html");
  };
  EXPECT_THAT(page(), AllOf(HasSubstr(app::base64_text(data::encode_png(fitted))),
                            HasSubstr("<dd>" + worst[0]["file"].get<std::string>() + "</dd>")));
  for (const json& each : worst) write_file(pictures_ / each["file"].get<std::string>(), "no picture");
  EXPECT_THAT(page(), AllOf(HasSubstr("is neither JPEG nor PNG"), Not(HasSubstr("src="))));
}

TEST_F(ImageRuns, ACheckpointOfARunWithoutModelsIsExportedAsTheRunWouldHave) {
  write_pictures();
  const Words by_name = {"--arch", "resnet18", "--train", pictures_, "--dev", pictures_,  "--batch",
                         "4",      "--stem",   "cifar",   "--mean",  "0.3",   "--labels", "3"};
  write_small_classifier(directory_ / "coloured", 10, 3);
  write_file(directory_ / "coloured/preprocessor_config.json",
             R"({"size": {"height": 16, "width": 16}, "resample": 3})");
  const Words labelled = {"--model", directory_ / "coloured", "--train",  pictures_, "--dev", pictures_, "--batch", "4",
                          "--std",   "0.1,0.2,0.3",           "--labels", "2"};
  const Words of_digits = {"--mean", "0.25", "--std", "0.125"};
  std::size_t number = 0;
  for (Words more : {by_name, labelled, of_digits}) {
    more.insert(more.end(), {"--image-size", "16", "--steps", "1", "--checkpoint-every", "1"});
    const fs::path run = directory_ / std::to_string(number++), exported = run.string() + "-exported";
    const ProgramRun trained = train(run, more);
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    fs::rename(run / "last", run.string() + "-last");
    fs::remove_all(run / "best");
    const ProgramRun made = run_mylos({"checkpoint", "export", run, "--output", exported});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    for (const char* file : {"model.safetensors", "config.json", "preprocessor_config.json"}) {
      EXPECT_EQ(read_file(exported / file), read_file(fs::path(run.string() + "-last") / file)) << number << file;
    }
  }
  const Words export_as = {"checkpoint", "export", directory_ / "0", "--output", directory_ / "named", "--model"};
  Words named = export_as, other = export_as;
  named.push_back("resnet18");
  EXPECT_EQ(run_mylos(named).exit_code, 0);
  other.push_back("resnet34");
  other[4] = directory_ / "other";
  expect_refused(run_mylos(other), "its tensors differ from those of the model in resnet34");
}

TEST_F(ImageRuns, PreparedPicturesTrainAlikeWithoutDamagedOnes) {
  write_pictures();
  write_small_classifier(model_, 2, 3);
  const Words more = {"--image-size",       "16", "--steps", "1",       "--batch", "2",
                      "--batch-norm-group", "2",  "--train", pictures_, "--dev",   pictures_};
  write_file(pictures_ / "dogs/Thumbs.db", "not read");
  const std::string passed_over = "pictures: 1 file passed over, not named .jpg, .jpeg or .png; the first: " +
                                  (pictures_ / "dogs/Thumbs.db").string();
  const ProgramRun plain = train(directory_ / "plain", more);
  ASSERT_EQ(plain.exit_code, 0) << plain.errors;
  EXPECT_THAT(plain.errors, HasSubstr(passed_over));
  write_file(pictures_ / "dogs/damaged.png", "no picture");
  expect_refused(train(directory_ / "other", more), "dogs/damaged.png: is neither JPEG nor PNG; `mylos prepare`");
  const Words prepare = {"prepare", "--task",   "image-classification",  "--data",
                         pictures_, "--output", directory_ / "images.h5"};
  const ProgramRun prepared = run_mylos(prepare);
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
  EXPECT_THAT(prepared.errors,
              AllOf(HasSubstr("1 damaged picture left out, the first: "), HasSubstr("images.h5: 4 images of 2 labels"),
                    HasSubstr(passed_over), Not(HasSubstr("no readable picture"))));
  Words strict = joined(prepare, {"--strict", "--overwrite"});
  expect_refused(run_mylos(strict), "dogs/damaged.png");
  Words again = more;
  again[again.size() - 3] = again.back() = directory_ / "images.h5";
  const ProgramRun run = train(run_, again);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(records_of(run_, "step").back()["loss"], records_of(directory_ / "plain", "step").back()["loss"]);
  EXPECT_EQ(read_json(run_ / "run.json")["resolved"]["checksums"],
            read_json(directory_ / "plain/run.json")["resolved"]["checksums"]);
  expect_refused(run_mylos({"prepare", "--task", "image-classification", "--data", pictures_, "--output",
                            directory_ / "images.jsonl"}),
                 "images are prepared as one file, whose name ends in .h5", 2);
  write_file(pictures_ / "birds/damaged.png", "no picture");
  Words birds = prepare;
  birds.emplace_back("--overwrite");
  const ProgramRun without = run_mylos(birds);
  ASSERT_EQ(without.exit_code, 0) << without.errors;
  EXPECT_THAT(without.errors,
              AllOf(HasSubstr("no readable picture of 1 label (birds): kept in the file without images"),
                    HasSubstr("images.h5: 4 images of 3 labels")));
}

TEST_F(ImageRuns, EachPartOfADirectoryIsPrepared) {
  ASSERT_EQ(train(directory_ / "plain", {"--epochs", "1"}).exit_code, 0);
  const auto prepare = [&](const char* file, const Words& more) {
    return run_mylos(
        joined({"prepare", "--task", "image-classification", "--data", digits_, "--output", directory_ / file}, more));
  };
  EXPECT_THAT(prepare("train.h5", {}).errors, HasSubstr("train.h5: 41 images of 10 labels"));
  EXPECT_THAT(prepare("test.h5", {"--part", "test"}).errors, HasSubstr("test.h5: 20 images of 10 labels"));
  expect_refused(prepare("none.h5", {"--part", "half"}), "--part half: expected training or test", 2);
  write_pictures();
  expect_refused(prepare("none.h5", {"--part", "test", "--data", pictures_}), "has no test files", 2);
  const ProgramRun run =
      train(run_, {"--epochs", "1", "--train", directory_ / "train.h5", "--dev", directory_ / "test.h5"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_file(run_ / "results.json"), read_file(directory_ / "plain/results.json"));
}

TEST_F(ImageRuns, ClassifyPrintsTheLikeliestLabels) {
  write_pictures();
  ASSERT_EQ(train(run_, {"--steps", "2"}).exit_code, 0);
  const std::string one = pictures_ / "cats/1.png", two = pictures_ / "dogs/2.png";
  const ProgramRun text = run_mylos({"classify", "--model", run_, one, two});
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_EQ(std::ranges::count(text.output, '\n'), 12);
  EXPECT_THAT(text.output, StartsWith(one + "\n  "));
  const ProgramRun listed = run_mylos({"classify", "--json", "--model", run_, one});
  ASSERT_EQ(listed.exit_code, 0) << listed.errors;
  const json likely = json::parse(listed.output);
  EXPECT_EQ(likely["file"], one);
  ASSERT_EQ(likely["labels"].size(), 5u);
  EXPECT_GE(likely["labels"][0]["probability"], likely["labels"][1]["probability"]);
  expect_refused(run_mylos({"classify", "--model", run_, directory_ / "none.png"}), "none.png is not there");
  expect_refused(run_mylos({"classify", "--model", run_, digits_}), "digits is a directory, not an image");
  write_file(directory_ / "damaged.png", "no picture");
  const ProgramRun damaged = run_mylos({"classify", "--model", run_, directory_ / "damaged.png"});
  expect_refused(damaged, "damaged.png: is neither JPEG nor PNG");
  EXPECT_THAT(damaged.errors, Not(HasSubstr("mylos prepare")));
  expect_refused(run_mylos({"classify", "--model", run_}), "classify: too few arguments", 2);
  expect_refused(run_mylos({"classify", "--model", model_, one}), "has no weights");
}

TEST_F(ImageRuns, PlansKnowModelsByName) {
  const ProgramRun plan = run_mylos({"plan", "--model", "resnet50", "--gpu", "a100-40", "--gpus", "4", "--data",
                                     "synthetic:2048x224x224", "--precision", "bfloat16", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  const json planned = json::parse(plan.output);
  EXPECT_THAT(planned["data"].get<std::string>(), HasSubstr("2,048 images of 1,000 labels, 224 x 224 pixels"));
  EXPECT_THAT(planned["recommended"].get<std::string>(),
              AllOf(HasSubstr("--train synthetic:2048x224x224 "), HasSubstr("--model resnet50"),
                    HasSubstr("--batch 256 --micro-batch 64")));
  EXPECT_EQ(planned["modes"][0]["micro_batch"], 64) << "in images";
  const ProgramRun without = run_mylos({"plan", "--model", "resnet18", "--gpu", "a100-40"});
  ASSERT_EQ(without.exit_code, 0) << without.errors;
  EXPECT_THAT(without.output, AllOf(HasSubstr("1,281,167 images, as ImageNet has, of 224 x 224 pixels"),
                                    HasSubstr("images/s"), HasSubstr("--train DATA")));
}

TEST_F(ImageRuns, BenchBatchTriesWholeGroups) {
  const Words words = {
      "bench", "batch",     "--task", "image-classification", "--data", digits_,  "--batch", "16", "--batch-norm-group",
      "4",     "--repeats", "1",      "--recompute",          "none",   "--json", "--model"};
  const auto micro_batches = [](const ProgramRun& run) {
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    const json table = json::parse(run.output);
    EXPECT_EQ(table["samples"], "images");
    EXPECT_EQ(table["largest_micro_batches"].size(), 1u);
    std::vector<std::size_t> tried;
    for (const json& row : table["rows"]) {
      EXPECT_EQ(row["failure"], nullptr) << row;
      tried.push_back(row["micro_batch"]);
    }
    return tried;
  };
  EXPECT_THAT(micro_batches(run_mylos(joined(words, {model_, "--gemm", default_provider()}))),
              ::testing::ElementsAre(4, 8, 16));
  const Words plan = {model_, "--plan", "--gpu", "a100-40", "--gpus", "2", "--modes", "replicated"};
  EXPECT_THAT(micro_batches(run_mylos(joined(words, plan))), ::testing::ElementsAre(4, 8));
}

TEST_F(ImageRuns, DerechosScriptsAreUnderstood) {
  const Words words = derecho_words(
      {"--steps_syn", "3", "--random_seed", "7", "--use_fsdp", "--learning_rate", "0.01", "--labels", "4"});
  const ProgramRun run = run_mylos(words);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json record = read_json(run_ / "run.json");
  EXPECT_EQ(record["train"], "synthetic:12x16x16");
  EXPECT_EQ(record["batch"], 4);
  EXPECT_EQ(record["seed"], 7);
  EXPECT_EQ(record["mode"], "sharded");
  EXPECT_EQ(records_of(run_, "step").size(), 3u);
}

TEST_F(ImageRuns, DrawnImagesAreTrainedOnWithTheLabelsOfTheEvaluation) {
  write_pictures();
  Words words = {"train",       "--arch",  "resnet18", "--use_syn", "--image_size", "16",
                 "--steps_syn", "1",       "--batch",  "4",         "--epochs",     "1",
                 "--dev",       pictures_, "--output", run_,        "--gemm",       default_provider()};
  expect_refused(run_mylos(words), "use --labels 2, or data of the model's labels");
  words.insert(words.end(), {"--labels", "2"});
  const ProgramRun run = run_mylos(words);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

TEST_F(ImageRuns, WhatDerechosScriptsSayOtherwiseIsAnswered) {
  const auto expect_answer = [&](const Words& more, const std::string& what) {
    expect_refused(train(run_, more), what, 2);
  };
  expect_answer({"--backend", "nccl"}, "--backend nccl is not supported; use --communicator auto, mpi or nccl");
  expect_answer({"--model_dir", "models"}, "use --output DIR: best/, last/, checkpoints/ and metrics.jsonl are in it");
  expect_answer({"--model_filename", "m.pth"}, "use --output DIR");
  expect_answer({"--logfile", "log"}, "every step is in metrics.jsonl of --output, and `mylos compare` prints");
  expect_answer({"--resume"}, "auto (as without it: an unfinished run in --output goes on by itself)");
  expect_answer({"--use_syn"}, "--use-syn and --train exclude each other");
  expect_answer({"--steps_syn", "3"}, "--steps-syn needs --use-syn");
  expect_answer({"--use_fsdp", "--mode", "replicated"}, "exclude each other");
  expect_answer({"--use-amp", "--precision", "float"}, "exclude each other");
  EXPECT_THAT(train(run_, {"--steps", "1", "--local_rank", "0"}).errors,
              HasSubstr("--local_rank 0 has no effect here: the launcher (srun, mpirun) determines ranks"));
}

TEST_F(ImageRuns, BadInputIsNamed) {
  const auto expect_error = [&](const Words& more, const std::string& what, int exit_code = 1) {
    expect_refused(train(run_, more), what, exit_code);
    EXPECT_FALSE(fs::exists(run_ / "last"));
  };
  expect_error({"--micro-batch", "3"}, "--micro-batch 3: micro-batches are whole groups of 4 images", 2);
  expect_error({"--micro-tokens", "64"}, "images have no tokens; use --micro-batch, in images", 2);
  expect_error({"--dropout", "0.1"}, "these models have no dropout; leave it out", 2);
  expect_error({"--mean", "0.5,0.5"}, "--mean 0.5,0.5: expected one number, or three separated by commas", 2);
  expect_error({"--std", "0"}, "--std 0: expected one number", 2);
  expect_error({"--eval-every", "2days"}, "--eval-every 2days: expected a number of steps, or of epochs: 10epochs", 2);
  expect_error({"--labels", "7"}, "--labels 7: " + digits_.string() + " has 10 labels (0, 1, 2, ...)");
  expect_error({"--train", directory_ / "none"}, "none is not there");
}

}  // namespace
}  // namespace mylos::tests
