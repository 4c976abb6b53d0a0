#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

/// mylos watch: a run seen through its files.
namespace mylos::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Watch : public TinyRun {
 protected:
  void write_run(bool finished) const {
    std::filesystem::create_directories(run_);
    write_file(run_ / "run.json", json({{"resolved", {{"steps", 100}, {"ranks", 4}, {"nodes", 2}, {"mode", "sharded"}}},
                                        {"precision", "bfloat16"},
                                        {"state", {{"finished", finished}}}})
                                      .dump());
  }
  /// Steps 1 to `count`, 2 s each, then half a line.
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
    write_file(run_ / "metrics.jsonl", text + R"({"step": 99, "tok)");
  }
};

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

TEST_F(Watch, EndsWhenTheRunDoes) {
  RunningProgram train({"train", "--model", model_, "--train", train_, "--output", run_, "--steps", "60", "--batch",
                        "4", "--max-length", "60", "--doc-stride", "20", "--checkpoint-every", "20"});
  await_metrics(run_);
  const ProgramRun seen = run_mylos({"watch", run_, "--refresh", "0.05"});
  EXPECT_EQ(train.wait().exit_code, 0);
  EXPECT_EQ(seen.exit_code, 0) << seen.errors;
  EXPECT_THAT(seen.output, HasSubstr(": finished"));
  EXPECT_THAT(seen.output, HasSubstr("60 of 60, 100.0 %"));
}

TEST_F(Watch, BadInput) {
  EXPECT_THAT(run_mylos({"watch", directory_ / "nothing"}).errors, HasSubstr("no run.json is there"));
  EXPECT_EQ(run_mylos({"watch"}).exit_code, 2);
  std::filesystem::create_directories(run_);
  write_file(run_ / "run.json", "[]");
  EXPECT_THAT(run_mylos({"watch", run_}).errors, HasSubstr("not a run's"));
  write_file(run_ / "run.json", "{");
  EXPECT_THAT(run_mylos({"watch", run_}).errors, HasSubstr("not JSON at line 1"));
}

}  // namespace
}  // namespace mylos::tests
