#include "app/report/compared_runs.hpp"

#include "app/options/parse.hpp"
#include "tests/app/image_run.hpp"
#include "tests/app/rank_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mylos::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<train::MetricKind> span_metrics = {
    {"validation_loss", "Validation loss", "", false}, {"exact", "Exact match", "%"}, {"f1", "F1", "%"}};

TEST(Compare, CountsFromTheFirstSettingOnTheFewestRanks) {
  const auto run = [](double seconds) {
    return ComparedRun{
        .training_seconds = seconds, .rate = 100.0 / seconds, .kinds = span_metrics, .metrics = {{"f1", 50.0}}};
  };
  const auto lines = comparison_json({{"replicated", 1, {run(4.0), run(5.0), run(9.0)}, {}},
                                      {"sharded", 2, {run(2.0), run(2.5), run(3.0)}, {}},
                                      {"sharded", 4, {}, "exit code 1: not enough slots"}});
  EXPECT_EQ(lines[0]["training_seconds"], 5.0);
  EXPECT_EQ(lines[0]["speedup"], 1.0);
  EXPECT_EQ(lines[1]["speedup"], 2.0);
  EXPECT_EQ(lines[1]["efficiency"], 1.0);
  EXPECT_EQ(lines[1]["tokens_per_second"], 40.0);
  EXPECT_EQ(lines[1]["f1"], 50.0);
  EXPECT_FALSE(lines[1].contains("exact"));
  EXPECT_EQ(lines[2]["failure"], "exit code 1: not enough slots");
}

/// The keys are those of versions before tasks named their metrics, and epoch_seconds.
TEST(Compare, OfQuestionAnsweringHasItsTableAndKeys) {
  const ComparedRun run{.name = "replicated-1-1",
                        .nodes = 1,
                        .total_seconds = 6.0,
                        .training_seconds = 5.0,
                        .epoch_seconds = 2.5,
                        .rate = 20.0,
                        .memory = 512.0 * (1 << 20),
                        .sent = 1.5 * (1 << 20),
                        .loss = 1.25,
                        .kinds = span_metrics,
                        .metrics = {{"validation_loss", 1.5}, {"exact", 40.25}, {"f1", 50.126}}};
  const std::vector<ComparedSetting> settings = {{"replicated", 1, {run}, {}},
                                                 {"sharded", 4, {}, "exit code 1: not enough slots"}};
  EXPECT_EQ(
      comparison_table(settings),
      "mode               nodes ranks total min  training s   epoch s  tokens/s  speedup efficiency  MiB a rank    "
      "sent MiB       loss   exact      F1 median run\n"
      "replicated             1     1      0.10         5.0       2.5        20     1.00       1.00         512        "
      "1.50   1.250000   40.25   50.13 replicated-1-1\n"
      "sharded                -     4 exit code 1: not enough slots\n");
  EXPECT_EQ(comparison_json({settings[0]}).dump(),
            R"([{"mode":"replicated","ranks":1,"nodes":1,"repeats":1,"median_run":"replicated-1-1",)"
            R"("total_seconds":6.0,"training_seconds":5.0,)"
            R"("epoch_seconds":2.5,"tokens_per_second":20.0,"speedup":1.0,"efficiency":1.0,"memory":536870912.0,)"
            R"("sent_per_step":1572864.0,"loss":1.25,"exact":40.25,"f1":50.126}])");
}

TEST(Compare, WritesMarkdownAndCsv) {
  const ComparedRun run{.name = "ddp-2x2-1", .nodes = 2, .total_seconds = 120.0, .training_seconds = 90.0, .rate = 7.0};
  const std::vector<ComparedSetting> settings = {{"replicated", 4, {run}, {}, 2},
                                                 {"sharded", 8, {}, "exit code 1: \"x\", y | z", 2}};
  const std::string head =
      "mode,nodes,ranks,total min,training s,epoch s,tokens/s,speedup,efficiency,MiB a rank,sent MiB,"
      "loss,median run\n";
  EXPECT_EQ(comparison_table(settings, TableFormat::csv),
            head +
                "replicated,2,4,2.00,90.0,-,7,1.00,1.00,0,0.00,0.000000,ddp-2x2-1\n"
                "sharded,2,8,\"exit code 1: \"\"x\"\", y | z\",,,,,,,,,\n");
  const std::string table = comparison_table(settings, TableFormat::markdown);
  EXPECT_THAT(table, HasSubstr("| mode | nodes | ranks |"));
  EXPECT_THAT(table, HasSubstr("\n| --- | --- |"));
  EXPECT_THAT(table, HasSubstr("\n| replicated | 2 | 4 | 2.00 | 90.0 |"));
  EXPECT_THAT(table, HasSubstr(" y \\| z |"));
}

/// The baseline took 778.8 s on one GPU, as the other program's, which is not one of the settings.
TEST(Compare, AnotherProgramsTimeIsTheBaseline) {
  const auto run = [](double total) {
    return ComparedRun{.total_seconds = total, .training_seconds = 1.0, .rate = 1.0};
  };
  const std::vector<ComparedSetting> settings = {{"replicated", 1, {run(826.2)}, {}},
                                                 {"replicated", 4, {run(300.0), run(286.2), run(200.0)}, {}, 2}};
  const auto lines = comparison_json(settings, 778.8);
  EXPECT_NEAR(lines[0]["speedup"].get<double>(), 0.943, 0.001);
  EXPECT_NEAR(lines[1]["speedup"].get<double>(), 2.721, 0.001);
  EXPECT_NEAR(lines[1]["efficiency"].get<double>(), 0.680, 0.001);
  EXPECT_THAT(comparison_table(settings, TableFormat::text, 778.8),
              HasSubstr("\nbaseline (other program)     -     1     12.98           -"));
  EXPECT_THAT(comparison_table(settings, TableFormat::csv, 778.8),
              HasSubstr("\nbaseline (other program),-,1,12.98,-,-,-,1.00,1.00,"));
}

TEST(Compare, NamesTheRunInTheMiddle) {
  const auto run = [](const char* name, double total, double training) {
    return ComparedRun{.name = name, .total_seconds = total, .training_seconds = training, .rate = 1.0};
  };
  const auto median = [](std::vector<ComparedRun> runs) {
    return comparison_lines({{"replicated", 1, std::move(runs), {}}})[0].name;
  };
  EXPECT_EQ(median({run("a", 3.0, 9.0), run("b", 1.0, 1.0), run("c", 2.0, 5.0)}), "c");
  EXPECT_EQ(median({run("a", unknown_figure, 9.0), run("b", unknown_figure, 1.0)}), "b");
  EXPECT_EQ(median({run("a", unknown_figure, 1.0), run("b", 4.0, 2.0), run("c", 3.0, 3.0)}), "c");
}

TEST(Compare, FollowsTheMetricsAndTheWorkOfTheRun) {
  const tests::TemporaryDirectory directory;
  tests::write_image_run(directory.path());
  const ComparedRun run = compared_run(train::read_run(directory.path()));
  EXPECT_EQ(run.rate, 192.0);
  EXPECT_EQ(run.mean_rate, 192.0);
  const std::vector<ComparedSetting> settings = {{"replicated", 1, {run}, {}}};
  EXPECT_EQ(
      comparison_table(settings),
      "mode               nodes ranks total min  training s   epoch s  images/s  speedup efficiency  MiB a rank    "
      "sent MiB       loss Perplexity Accuracy median run\n"
      "replicated             -     1      0.00         1.0      20.0       192     1.00       1.00           0        "
      "0.00   1.000000       12.5    87.65          -\n");
  const auto line = comparison_json(settings)[0];
  EXPECT_EQ(line["images_per_second"], 192.0);
  EXPECT_FALSE(line.contains("tokens_per_second"));
  EXPECT_FALSE(line.contains("validation_loss"));
  EXPECT_EQ(line["perplexity"], 12.5);
  EXPECT_EQ(line["accuracy"], 87.654);
}

TEST(Compare, AnEpochTakesItsStepsTimesTheMedianStep) {
  const auto run = [](const nlohmann::json& resolved) {
    train::RunRecord record;
    record.run = {{"resolved", resolved}};
    for (const double seconds : {9.0, 0.5, 0.25}) record.steps.push_back({{"seconds", seconds}, {"tokens", 8}});
    return compared_run(record);
  };
  EXPECT_EQ(run({{"steps", 3u}, {"epochs", 3.0 / 7.0}}).epoch_seconds, 3.5) << "shorter than an epoch";
  EXPECT_EQ(run({{"steps", 21u}, {"epochs", 3.0}}).epoch_seconds, 3.5);
  for (const nlohmann::json& epochs :
       {nlohmann::json(), nlohmann::json(0.0), nlohmann::json(-1), nlohmann::json("3")}) {
    const ComparedRun unknown = run({{"steps", 3u}, {"epochs", epochs}});
    const std::vector<ComparedSetting> settings = {{"replicated", 1, {unknown}, {}}};
    EXPECT_TRUE(std::isnan(unknown.epoch_seconds)) << epochs;
    EXPECT_FALSE(comparison_json(settings)[0].contains("epoch_seconds")) << epochs;
    EXPECT_THAT(comparison_table(settings), HasSubstr("9.8         -        16 ")) << epochs;
  }
}

TEST(Compare, OtherWorkHasNoSpeedup) {
  const ComparedRun tokens{.rate = 20.0, .kinds = span_metrics}, images{.work = "images", .rate = 40.0};
  const std::vector<ComparedSetting> settings = {{"replicated", 1, {tokens}, {}}, {"sharded", 2, {images}, {}}};
  EXPECT_EQ(common_work(settings), std::nullopt);
  const auto lines = comparison_json(settings);
  EXPECT_EQ(lines[0]["speedup"], 1.0);
  EXPECT_FALSE(lines[1].contains("speedup"));
  EXPECT_FALSE(lines[1].contains("efficiency"));
  EXPECT_EQ(lines[1]["images_per_second"], 40.0);
}

TEST(Compare, AMetricDoesNotTakeTheNameOfAnotherFigure) {
  const ComparedRun run{.rate = 1.0,
                        .loss = 2.0,
                        .kinds = {{"validation_loss", ""}, {"mode", ""}, {"loss", ""}},
                        .metrics = {{"mode", 3.0}, {"loss", 4.0}}};
  const auto line = comparison_json({{"replicated", 1, {run}, {}}})[0];
  EXPECT_EQ(line["mode"], "replicated");
  EXPECT_EQ(line["loss"], 2.0);
  EXPECT_THAT(comparison_table({{"replicated", 1, {run}, {}}}), HasSubstr("replicated"));
}

TEST(Compare, HeadingsAreShortAndHaveUnits) {
  EXPECT_EQ(column_heading({"exact", "Exact match", "%"}), "exact");
  EXPECT_EQ(column_heading({"f1", "F1", "%"}), "F1");
  EXPECT_EQ(column_heading({"top5", ""}), "top5");
  EXPECT_EQ(column_heading({"latency", "Latency", "ms", false}), "Latency ms");
  EXPECT_EQ(metric_value_text({"latency", "Latency", "ms", false}, 12.3456), "12.346");
  EXPECT_EQ(metric_value_text({"f1", "F1", "%"}, 12.3456), "12.35");
}

TEST(Compare, ALossAloneHasAColumn) {
  const ComparedRun run{.kinds = {span_metrics.front()}, .metrics = {{"validation_loss", 1.5}}};
  const auto metrics = compared_metrics({{"replicated", 1, {run}, {}}});
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics.front().name, "validation_loss");
}

class CompareCommand : public tests::RankRuns {
 protected:
  using RankRuns::RankRuns;
  std::vector<std::string> compare_words(const std::vector<std::string>& more) const {
    std::vector<std::string> words = train_words(run_, {"--steps", "3"});
    words.front() = "compare";
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(CompareCommand, PrintsALineForEveryModeAndNumberOfRanks) {
  const tests::ProgramRun run =
      tests::run_mylos(compare_words({"--modes", "replicated,sharded", "--ranks", "1,2", "--repeats", "1", "--json"}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const auto lines = nlohmann::json::parse(run.output);
  ASSERT_EQ(lines.size(), 4u);
  for (const auto& line : lines) {
    EXPECT_NEAR(line["loss"].get<double>(), lines[0]["loss"].get<double>(), 1e-5);
    ASSERT_TRUE(line.contains(family_.metric)) << line;
    EXPECT_EQ(line[family_.metric], lines[0][family_.metric]);
    EXPECT_EQ(line["sent_per_step"].get<double>() > 0.0, line["ranks"] == 2) << line;
    EXPECT_GT(line["epoch_seconds"].get<double>(), 0.0) << line;
  }
  EXPECT_TRUE(std::filesystem::exists(run_ / "comparison.json"));
}

TEST_F(CompareCommand, ABatchPerRankIsMultipliedByTheRanksOfEachRun) {
  std::vector<std::string> words = train_words(run_, {"--steps", "2", "--batch-per-rank", "2"});
  words.front() = "compare";
  words.insert(words.end(), {"--modes", "replicated", "--ranks", "1,2", "--repeats", "1"});
  const tests::ProgramRun run = tests::run_mylos(words);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  for (const std::size_t ranks : {1, 2}) {
    const auto directory = run_ / ("replicated-" + std::to_string(ranks) + "-1");
    EXPECT_EQ(tests::metrics_of(directory).front()["sequences"], 2 * ranks);
  }
}

TEST_F(CompareCommand, ReplacesItsOwnFilesOnly) {
  const auto compare = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = compare_words({"--modes", "replicated", "--ranks", "1", "--repeats", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return tests::run_mylos(words);
  };
  std::filesystem::create_directories(run_);
  for (const char* name :
       {"settings.json", "comparison.json", "comparison.md", "comparison.csv", "replicated-1-1.log"}) {
    tests::write_file(run_ / name, R"({"of": "somebody"})");
    const tests::ProgramRun refused = compare();
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.error_lines().back(),
                HasSubstr(std::string(name) + ": exists and is not written by mylos compare"));
    EXPECT_EQ(tests::read_file(run_ / name), R"({"of": "somebody"})");
    std::filesystem::remove(run_ / name);
  }
  tests::write_file(run_ / "comparison.json", R"({"of": "somebody"})");
  EXPECT_EQ(compare({"--overwrite"}).exit_code, 0);
  EXPECT_EQ(compare().exit_code, 0);
}

/// The launcher is a script that writes its words and starts as many ranks as it is asked for, on one node.
TEST_F(CompareCommand, TellsTheLauncherTheNodesAndChecksThem) {
  const std::filesystem::path launcher = directory_ / "launch", words = directory_ / "words";
  tests::write_file(launcher, "echo \"$1 $2\" >> " + words.string() + "; shift 2; exec \"$@\"\n");
  const tests::ProgramRun run = tests::run_mylos(
      compare_words({"--modes", "replicated", "--ranks", "1,2x1", "--repeats", "1", "--json", "--launcher",
                     "sh " + launcher.string() + " nodes={nodes} each={ranks_per_node}", "--baseline-seconds", "100"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(tests::read_file(words), "nodes=1 each=1\nnodes=2 each=1\n");
  const auto lines = nlohmann::json::parse(run.output);
  EXPECT_EQ(lines[0]["median_run"], "replicated-1-1");
  EXPECT_GT(lines[0]["speedup"].get<double>(), 1.0);
  EXPECT_EQ(lines[1]["failure"], "ran on 1 node and 1 rank; the job's nodes, or the launcher, do not fit --ranks 2x1");
  EXPECT_THAT(tests::read_file(run_ / "replicated-1-1.log"), HasSubstr("done after"));
  EXPECT_THAT(tests::read_file(run_ / "comparison.md"), HasSubstr("| baseline (other program) | - | 1 | 1.67 |"));
  EXPECT_THAT(tests::read_file(run_ / "comparison.csv"), HasSubstr("\nreplicated,1,1,"));
}

TEST_F(CompareCommand, RefusesWhatTheLauncherCannotDo) {
  const auto error = [&](const std::vector<std::string>& more) {
    const tests::ProgramRun run = tests::run_mylos(compare_words(more));
    EXPECT_EQ(run.exit_code, 2);
    return run.error_lines().back();
  };
  EXPECT_THAT(error({"--ranks", "1,2x2"}), HasSubstr("--ranks 2x2 needs {nodes} or {ranks_per_node} in --launcher"));
  EXPECT_THAT(error({"--ranks", "2x2x2"}), HasSubstr("nodes x ranks a node: 1,2,2x2"));
  EXPECT_THAT(error({"--baseline-seconds", "0"}), HasSubstr("--baseline-seconds 0: expected a number above 0"));
}

// The job is killed in the second run and requeued.
TEST_F(CompareCommand, ARequeuedJobKeepsTheRunsThatItFinished) {
  const tests::EnvironmentVariable job("SLURM_JOB_ID", "7");
  const auto compare = [&](const std::string& seed) {
    return tests::run_mylos(compare_words({"--modes", "replicated", "--ranks", "1", "--repeats", "2", "--json",
                                           "--checkpoint-every", "1", "--seed", seed}));
  };
  ASSERT_EQ(compare("42").exit_code, 0);
  const std::filesystem::path finished = run_ / "replicated-1-1", killed = run_ / "replicated-1-2";
  const auto interrupt = [&] {
    nlohmann::json run = tests::read_json(killed / "run.json");
    run["state"]["finished"] = false;
    tests::write_file(killed / "run.json", run.dump());
  };
  interrupt();
  const std::string log = tests::read_file(run_ / "replicated-1-1.log");
  const std::string last = "mylos compare: the whole process took ";
  ASSERT_THAT(log, HasSubstr(last));
  tests::write_file(run_ / "replicated-1-1.log", log.substr(0, log.rfind(last)) + last + "1000.5 s\n");
  const auto rows = tests::metrics_of(finished);
  const auto old = tests::metrics_of(killed);
  const tests::EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1");
  const tests::ProgramRun again = compare("42");
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.errors, HasSubstr("replicated on 1 rank, repeat 1: this job has already finished it; "
                                      "its figures are those of its metrics and its log"));
  EXPECT_THAT(again.errors, ::testing::ContainsRegex("replicated on 1 rank, repeat 2: [0-9.]+ s"));
  EXPECT_EQ(tests::metrics_of(finished), rows);
  EXPECT_NE(tests::metrics_of(killed), old) << "run again";
  EXPECT_EQ(tests::metrics_of(killed).front()["step"], 1) << "from the start";
  const auto line = nlohmann::json::parse(again.output)[0];
  EXPECT_EQ(line["repeats"], 2);
  EXPECT_FALSE(line.contains("kept")) << "its log has the time of the process";
  EXPECT_GT(line["total_seconds"].get<double>(), 500.0) << "the mean of 1000.5 s and the new run";
  EXPECT_LT(line["total_seconds"].get<double>(), 1000.0);
  std::filesystem::remove(run_ / "replicated-1-1.log");
  interrupt();
  const tests::ProgramRun without = compare("42");
  ASSERT_EQ(without.exit_code, 0) << without.errors;
  EXPECT_EQ(nlohmann::json::parse(without.output)[0]["kept"], 1);
  // Another comparison in the same job.
  const tests::ProgramRun other = compare("7");
  ASSERT_EQ(other.exit_code, 0) << other.errors;
  EXPECT_FALSE(nlohmann::json::parse(other.output)[0].contains("kept")) << other.errors;
  EXPECT_EQ(tests::read_json(finished / "run.json")["seed"], 7);
}

TEST(Compare, ARunWhoseProcessWasNotMeasuredHasNoTotal) {
  const auto run = [](double total) {
    return ComparedRun{.total_seconds = total, .training_seconds = 4.0, .rate = 1.0};
  };
  const auto lines = comparison_json(
      {{"replicated", 1, {run(unknown_figure), run(5.0)}, {}}, {"sharded", 1, {run(unknown_figure)}, {}}});
  EXPECT_EQ(lines[0]["total_seconds"], 5.0);
  EXPECT_EQ(lines[0]["kept"], 1);
  EXPECT_FALSE(lines[1].contains("total_seconds"));
  EXPECT_THAT(comparison_table({{"sharded", 1, {run(unknown_figure)}, {}}}),
              HasSubstr("sharded                -     1         -         4.0"));
}

TEST_F(CompareCommand, SaysWhatCouldNotRunAndGoesOn) {
  const tests::ProgramRun run =
      tests::run_mylos(compare_words({"--modes", "ddp,hsdp", "--ranks", "1", "--repeats", "1", "--shard-size", "3"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("exit code 1: --shard-size 3: "));
}

TEST(Compare, AFailureIsTheErrorElseTheLaunchersMessage) {
  const std::string frame(74, '-');
  const std::string ended = frame + "\nPrimary job terminated normally, but 1 process returned\n" + frame + "\n";
  EXPECT_EQ(failure_reason("step 1/9\nmylos: error: the disk is full\n" + ended), "the disk is full");
  EXPECT_EQ(
      failure_reason(frame + "\nThere are not enough slots available in the system\nto satisfy 4\n" + frame + "\n"),
      "There are not enough slots available in the system");
  EXPECT_EQ(failure_reason("srun: error: Unable to create step\n"), "srun: error: Unable to create step");
  EXPECT_EQ(failure_reason(""), "");
}

TEST(Compare, TakesModesByTheNamesThatModeTakes) {
  const auto strategies = [](const std::string& typed) {
    const std::vector<std::string> words = {"--model=m", "--train=t", "--output=o", "--modes=" + typed};
    return parse_arguments(FileReader(), *find_command("compare"), words).strategies;
  };
  EXPECT_THAT(strategies("ddp,zero1,deepspeed_stage_2,fsdp,hsdp"),
              ElementsAre("replicated", "sharded-optimizer", "sharded-gradients", "sharded", "hybrid"));
  EXPECT_THAT(strategies("all"),
              ElementsAre("replicated", "sharded-optimizer", "sharded-gradients", "sharded", "hybrid"));
  EXPECT_THAT(tests::error_of([&] { strategies("ddp,fast"); }),
              HasSubstr("expected a list, separated by commas, of replicated, sharded-optimizer, "));
}

TEST_F(CompareCommand, RefusesWhatItSaysItself) {
  EXPECT_THAT(tests::run_mylos(compare_words({"--mode", "sharded"})).errors, HasSubstr("--modes A,B"));
  EXPECT_THAT(tests::run_mylos(compare_words({"--modes", "fast"})).errors, HasSubstr("expected a list"));
  EXPECT_THAT(tests::run_mylos(compare_words({"--launcher", "mpirun"})).errors, HasSubstr("{n}"));
}

}  // namespace
}  // namespace mylos::app
