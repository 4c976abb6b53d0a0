#include "core/base/process/process.hpp"
#include "core/device.hpp"
#include "tests/app/family.hpp"
#include "tests/app/image_run.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/waiting.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>

/// mylos watch: observes a run through its files.
namespace mylos::tests {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Watch : public TinyRun {
 protected:
  using TinyRun::TinyRun;
  /// Replaces a file atomically, as the program does.
  void replace(const std::filesystem::path& file, const std::string& text) const {
    write_file(directory_ / "written", text);
    std::filesystem::rename(directory_ / "written", file);
  }
  void write_run(bool finished) const {
    std::filesystem::create_directories(run_);
    replace(run_ / "run.json", json({{"resolved", {{"steps", 100}, {"ranks", 4}, {"nodes", 2}, {"mode", "sharded"}}},
                                     {"precision", "bfloat16"},
                                     {"state", {{"finished", finished}}}})
                                   .dump());
  }
  /// Writes `count` GPUs that used half a kilowatt-hour each, then half a line.
  void write_gpus(const std::string& node, std::size_t count, const std::string& more = "") const {
    std::string gpus;
    for (std::size_t i = 0; i < count; ++i) {
      gpus += std::string(i == 0 ? "" : ", ") + R"({"index": )" + std::to_string(i) +
              R"(, "name": "Fake", "utilization": )" + std::to_string(90 + i) +
              R"(, "memory": 8589934592, "memory_utilization": 41, "memory_total": 17179869184, "power": 250.4, )" +
              R"("energy": 1800000.0})";
    }
    write_file(run_ / "gpus" / (node + ".jsonl"), R"({"time": )" + std::to_string(seconds_since_1970()) +
                                                      R"(, "step": 1, "node": {"cpu": 43.1}, "gpus": [)" + gpus + more +
                                                      "]}\n" + R"({"time": 17)");
  }
  /// Writes steps 1 to `count` of 2 s each, then half a line.
  void write_metrics(std::size_t count) const {
    std::string text;
    for (std::size_t step = 1; step <= count; ++step) {
      text += json({{"step", step},
                    {"loss", 3.0},
                    {"tokens", 10},
                    {"seconds", 2.0},
                    {"tokens_per_second", 1234.0},
                    {"memory", 1 << 20},
                    {"gradient_norm", 1.0},
                    {"learning_rate", 1e-5}})
                  .dump() +
              "\n";
    }
    text +=
        json({{"step", count}, {"validation_loss", 1.5}, {"exact", 40.0}, {"f1", 50.0}, {"best", true}}).dump() + "\n";
    replace(run_ / "metrics.jsonl", text + R"({"step": 99, "tok)");
  }
};

TEST_F(Watch, ShowsTheWorkThatTheRunCounts) {
  write_image_run(run_);
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  ASSERT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr("192 images/s, 1.0 KiB on a rank"));
  EXPECT_THAT(seen.output, HasSubstr("step 2: validation loss 1.5, perplexity 12.5, accuracy 87.654, the best so far"));
}

TEST_F(Watch, ShowsHowFarARunIs) {
  write_run(false);
  write_metrics(40);
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  ASSERT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr("2:00 left"));
  EXPECT_THAT(seen.output, HasSubstr("4 ranks on 2 nodes, sharded, bfloat16"));
  EXPECT_THAT(seen.output, HasSubstr("40 of 100, 40.0 %"));
  EXPECT_THAT(seen.output, HasSubstr("3.0000, 3.0000 over the last 50 steps"));
  EXPECT_THAT(seen.output, HasSubstr("1,234 tokens/s"));
  EXPECT_THAT(seen.output, HasSubstr("step 40: validation loss 1.5, exact 40, f1 50, the best so far"));
  EXPECT_THAT(seen.output, Not(HasSubstr("\x1b"))) << "no terminal";
}

TEST_F(Watch, SaysWhereNothingIsWrittenAnyMore) {
  write_run(false);
  write_metrics(4);
  const auto earlier = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(10);
  for (const char* file : {"run.json", "metrics.jsonl"}) std::filesystem::last_write_time(run_ / file, earlier);
  EXPECT_THAT(run_mylos({"watch", run_, "--once"}).output, HasSubstr("nothing written for 10:00: see the job's log"));
  EXPECT_EQ(json::parse(run_mylos({"watch", run_, "--json"}).output)["quiet"], true);
}

TEST_F(Watch, ALossThatIsNotFiniteIsShown) {
  write_run(false);
  write_file(run_ / "metrics.jsonl", R"({"step": 1, "tokens": 10, "seconds": 2.0, "loss": null, "gradient_norm": null})"
                                     "\n");
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr("nan"));
}

TEST_F(Watch, ARunThatHasJustBegunHasNoSteps) {
  write_run(false);
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  EXPECT_EQ(seen.exit_code, 0);
  EXPECT_THAT(seen.output, HasSubstr("has begun"));
  EXPECT_THAT(seen.output, HasSubstr("0 of 100"));
}

TEST_F(Watch, ShowsTheCheckpointItsSizeAndAge) {
  write_run(false);
  const std::filesystem::path file = run_ / "checkpoints" / "step-000040.h5";
  write_file(file, std::string(3 << 10, 'x'));
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(125));
  EXPECT_THAT(run_mylos({"watch", run_, "--once"}).output,
              ContainsRegex("checkpoint +step-000040.h5, 3.0 KiB, 2:0[5-9] ago\n"));
  const json seen = json::parse(run_mylos({"watch", run_, "--json"}).output);
  EXPECT_EQ(seen["checkpoint_bytes"], 3 << 10);
  EXPECT_GE(seen["checkpoint_age"], 125.0);
  EXPECT_TRUE(seen["energy_kwh"].is_null());
  EXPECT_TRUE(seen["gpus"].empty());
}

TEST_F(Watch, ShowsEveryGpu) {
  write_run(false);
  write_metrics(4);
  write_gpus("n1", 2);
  write_gpus("n2", 1, R"(, {"index": 1, "name": "MIG 1g"})");
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  ASSERT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output,
              HasSubstr("energy     1.5 kWh\n"
                        "nodes      node  CPU %  GPUs         GPU %  GPU memory GiB  memory controller %  GPU power W\n"
                        "           n1       43     2  90 / 90 / 91            8.00                   41          250\n"
                        "           n2       43     2            90            8.00                   41          250\n"
                        "gpu        n1 0   90 %   8.00 of 16.00 GiB   250 W  Fake\n"
                        "gpu        n1 1   91 %   8.00 of 16.00 GiB   250 W  Fake\n"
                        "gpu        n2 0   90 %   8.00 of 16.00 GiB   250 W  Fake\n"
                        "gpu        n2 1      -                   -       -  MIG 1g\n"));
  const json reported = json::parse(run_mylos({"watch", run_, "--json"}).output);
  EXPECT_EQ(reported["energy_kwh"], 1.5);
  ASSERT_EQ(reported["gpus"].size(), 4u);
  EXPECT_EQ(reported["gpus"][1]["node"], "n1");
  EXPECT_EQ(reported["gpus"][1]["index"], 1);
  EXPECT_EQ(reported["gpus"][1]["utilization"], 91.0);
  EXPECT_EQ(reported["gpus"][1]["memory_total"], 16.0 * (1 << 30));
  EXPECT_EQ(reported["gpus"][1]["memory_utilization"], 41.0);
  EXPECT_TRUE(reported["gpus"][3]["power"].is_null());
  ASSERT_EQ(reported["nodes"].size(), 2u);
  EXPECT_EQ(reported["nodes"][1]["node"], "n2");
  EXPECT_EQ(reported["nodes"][1]["cpu"], 43.1);
  EXPECT_TRUE(reported["nodes"][1]["power"].is_null());
}

TEST_F(Watch, AFinishedRunHasUsedEnergyAndItsGpusDoNothing) {
  write_run(true);
  write_gpus("n1", 2);
  const std::string seen = run_mylos({"watch", run_, "--once"}).output;
  EXPECT_THAT(seen, HasSubstr("energy     1 kWh\n"));
  EXPECT_THAT(seen, Not(HasSubstr("Fake")));
}

TEST_F(Watch, ARunRecordsItsNodeAndClosesWithIt) {
  const std::filesystem::path gpu_log = directory_ / "gpus.csv";
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",    "--model", model_,      "--train", train_,
                                      "--output", run_,      "--gpu-log", gpu_log};
    words.insert(words.end(), more.begin(), more.end());
    return run_mylos(with_options(words, {}));
  };
  const auto records = [&] { return read_file(std::filesystem::directory_iterator(run_ / "gpus")->path()); };
  const ProgramRun first = train({"--steps", "2"});
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_THAT(first.errors, ContainsRegex("\nmean / peak of each node.*\nnode .* memory GiB.*\n.*[0-9] / [0-9].*\n"
                                          "done after 2 steps"));
  if (runs_on_host) {
    EXPECT_THAT(first.errors,
                HasSubstr("--gpu-log " + gpu_log.string() + ": not written, because this run computes on no GPU\n"));
    EXPECT_FALSE(std::filesystem::exists(gpu_log));
  }
  const std::string before = records();
  const json line = json::parse(before.substr(0, before.find('\n')));
  EXPECT_GT(line["node"]["memory"], 0);
  EXPECT_GT(line["node"]["memory_total"], line["node"]["memory"]);
  EXPECT_EQ(line["step"], 0);
  EXPECT_EQ(train({"--steps", "4", "--extend"}).exit_code, 0);
  EXPECT_THAT(records(), StartsWith(before)) << "a resumed run appends";
  EXPECT_GT(records().size(), before.size());
  const json seen = json::parse(run_mylos({"watch", run_, "--json"}).output);
  ASSERT_EQ(seen["nodes"].size(), 1u);
  EXPECT_GT(seen["nodes"][0]["memory"], 0);
}

using WatchOfFamily = OnFamily<Watch>;

TEST_P(WatchOfFamily, EndsWhenTheRunDoes) {
  RunningProgram train(with_options({"train", "--model", model_, "--train", train_, "--dev", train_, "--output", run_,
                                     "--steps", "60", "--batch", "4", "--checkpoint-every", "20"},
                                    {}));
  await_metrics(run_);
  const ProgramRun seen = run_mylos({"watch", run_, "--refresh", "0.05"});
  EXPECT_EQ(train.wait().exit_code, 0);
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr(": finished"));
  EXPECT_THAT(seen.output, HasSubstr("60 of 60, 100.0 %"));
  EXPECT_THAT(seen.output, HasSubstr(family_.metric));
}

MYLOS_FOR_EACH_FAMILY(WatchOfFamily);

TEST_F(Watch, ShowsItsPictureWhileTheRunGoesOn) {
  write_run(false);
  write_metrics(4);
  const std::filesystem::path seen = directory_ / "seen.txt";
  write_file(seen, "");
  const auto awaits = [&](const char* what) {
    wait_until([&] { return read_file(seen).find(what) != std::string::npos; });
    EXPECT_THAT(read_file(seen), HasSubstr(what));
  };
  RunningProgram watch({"watch", run_, "--refresh", "0.05"}, "", seen);
  awaits("4 of 100");
  write_metrics(5);
  awaits("5 of 100");
  write_run(true);
  EXPECT_EQ(watch.wait().exit_code, 0);
  EXPECT_THAT(read_file(seen), HasSubstr(": finished"));
}

TEST_F(Watch, EndsWhereTheRunSaysThatItEnded) {
  const std::vector<std::string> words = {
      "train",  "--model",          model_,         "--train", train_,         "--output", run_, "--batch", "4",
      "--gemm", default_provider(), "--max-length", "60",      "--doc-stride", "20"};
  std::vector<std::string> endless = words, diverging = words;
  endless.insert(endless.end(), {"--steps", "100000"});
  RunningProgram train(endless);
  await_metrics(run_);
  train.send(SIGTERM);
  EXPECT_EQ(train.wait().exit_code, 143);
  const ProgramRun seen = run_mylos({"watch", run_});
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr(": ended by SIGTERM\n"));
  EXPECT_EQ(json::parse(run_mylos({"watch", run_, "--json"}).output)["ended"], "ended by SIGTERM");
  std::string weights = read_file(model_ / "model.safetensors");
  weights.replace(weights.size() - 4, 4, std::string("\x00\x00\xc0\x7f", 4));  // NaN
  write_file(model_ / "model.safetensors", weights);
  diverging.insert(diverging.end(), {"--overwrite", "--steps", "2"});
  EXPECT_EQ(run_mylos(diverging).exit_code, 1);
  EXPECT_THAT(run_mylos({"watch", run_}).output, ContainsRegex(": failed: step [0-9]+: loss "));
  write_tiny_model(model_);
  std::vector<std::string> whole = words;
  whole.insert(whole.end(), {"--overwrite", "--steps", "2"});
  EXPECT_EQ(run_mylos(whole).exit_code, 0);
  EXPECT_TRUE(json::parse(run_mylos({"watch", run_, "--json"}).output)["ended"].is_null());
}

TEST_F(Watch, WhatIsOfAnotherVersionIsPassedOver) {
  std::filesystem::create_directories(run_);
  write_file(run_ / "run.json",
             R"({"resolved": {"ranks": "x", "mode": 3}, "precision": 7, "state": {"finished": "y"}})");
  write_file(
      run_ / "metrics.jsonl",
      R"({"step": 3, "tokens": 10, "seconds": "x", "learning_rate": null, "tokens_per_second": [], "memory": 1e30})"
      "\n"
      R"({"step": 3, "best": "x", "f1": "y"})"
      "\n");
  const ProgramRun seen = run_mylos({"watch", run_, "--once"});
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr("3 of unknown"));
  EXPECT_THAT(seen.output, HasSubstr("learning rate -"));
  EXPECT_THAT(seen.output, Not(HasSubstr("0 B")));
  for (const char* text : {R"({"resolved": "x"})", R"({"resolved": null, "state": []})"}) {
    write_file(run_ / "run.json", text);
    EXPECT_EQ(run_mylos({"watch", run_, "--json"}).exit_code, 0) << text;
  }
}

TEST_F(Watch, ADirectoryWhoseNameIsNoUtf8IsToldInJson) {
  const std::filesystem::path odd = directory_ / "run\xff";
  write_run(false);
  std::filesystem::rename(run_, odd);
  const ProgramRun seen = run_mylos({"watch", odd, "--json"});
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(json::parse(seen.output)["run"].get<std::string>(), HasSubstr("run\xef\xbf\xbd"));
}

TEST_F(Watch, BadInput) {
  EXPECT_THAT(run_mylos({"watch", directory_ / "nothing"}).errors, HasSubstr("contains no run.json"));
  EXPECT_EQ(run_mylos({"watch"}).exit_code, 2);
  std::filesystem::create_directories(run_);
  write_file(run_ / "run.json", "[]");
  EXPECT_THAT(run_mylos({"watch", run_}).errors, HasSubstr("not a run's"));
  write_file(run_ / "run.json", "{");
  EXPECT_THAT(run_mylos({"watch", run_}).errors, HasSubstr("not JSON at line 1"));
}

}  // namespace
}  // namespace mylos::tests
