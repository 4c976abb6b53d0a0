#include "app/report/report.hpp"

#include "core/base/process/subprocess.hpp"
#include "tests/app/family.hpp"
#include "tests/app/image_run.hpp"
#include "tests/app/tiny_run.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <regex>

/// mylos report: pages of real runs, damaged runs and long runs.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class Report : public TinyRun {
 protected:
  using TinyRun::TinyRun;

  ProgramRun train(const fs::path& output, const Words& more = {}) const {
    return run_mylos(with_options({"train", "--model", model_, "--train", train_, "--dev", train_, "--output", output,
                                   "--lr", "1e-2", "--batch", "4"},
                                  more));
  }

  ProgramRun report(const Words& arguments) const {
    return run_mylos(joined({"report", "--output", page_}, arguments));
  }

  /// Returns the page of these runs. It must be well-formed and refer to no other resource.
  std::string page_of(const Words& arguments) const {
    const ProgramRun run = report(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    const std::string page = read_file(page_);
    const ProcessResult parsed = run_process(
        {"python3", "-c", "import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])", page_.string()});
    EXPECT_EQ(parsed.exit_code, 0) << parsed.errors;
    for (const char* asks : {"<script", "<link", "@import", "url(", "http:", "https:"}) {
      EXPECT_EQ(page.find(asks), std::string::npos) << asks;
    }
    const std::string in_page = "src=\"data:image/png;base64,";
    for (std::size_t at = page.find("src="); at != std::string::npos; at = page.find("src=", at + 1)) {
      EXPECT_EQ(page.substr(at, in_page.size()), in_page);
    }
    EXPECT_THAT(page, Not(HasSubstr(">nan<")));
    return page;
  }

  /// Writes SQuAD's file of one question.
  fs::path write_question(const std::string& context, const std::string& id, const std::string& question,
                          const std::string& answer, std::size_t start) const {
    const json answers = json::array({{{"text", answer}, {"answer_start", start}}});
    const json qas = json::array({{{"id", id}, {"question", question}, {"answers", answers}}});
    const json paragraphs = json::array({{{"context", context}, {"qas", qas}}});
    const json data = json::array({{{"title", "t"}, {"paragraphs", paragraphs}}});
    write_file(directory_ / "dev.json", json({{"version", "1.1"}, {"data", data}}).dump());
    return directory_ / "dev.json";
  }

  /// Writes the run.json of a run of `steps` steps.
  void write_run(const fs::path& directory, std::size_t steps, bool finished, const json& more = json::object()) const {
    json run = {{"dev", train_.string()},
                {"seed", 42},
                {"resolved", {{"steps", steps}, {"ranks", 1}, {"mode", "replicated"}}},
                {"state", {{"finished", finished}}}};
    run.update(more);
    write_file(directory / "run.json", run.dump());
  }

  static std::string step_line(std::size_t step, const json& loss = 1.25) {
    return json({{"step", step},
                 {"epoch", 0.1},
                 {"loss", loss},
                 {"gradient_norm", 1.0},
                 {"learning_rate", 3e-5},
                 {"tokens", 1000},
                 {"seconds", 0.5},
                 {"tokens_per_second", 2000.0},
                 {"memory", 1 << 28},
                 {"sent", 0}})
               .dump() +
           "\n";
  }

  fs::path page_ = directory_ / "report.html";
};

using ReportOfFamily = OnFamily<Report>;

TEST_P(ReportOfFamily, OfARunHasItsNumbersAndOfSeveralTheirDifferences) {
  const fs::path other = directory_ / "other";
  ASSERT_EQ(train(run_, {"--epochs", "4", "--checkpoint-every", "6", "--seed", "7"}).exit_code, 0);
  ASSERT_EQ(train(other, {"--steps", "3", "--lr", "1e-3"}).exit_code, 0);
  const std::string page = page_of({run_});
  for (const json& row : metrics_of(run_, "loss")) {
    EXPECT_THAT(page, HasSubstr(fmt::format("<tr><th scope=\"row\">{}</th><td class=\"n\">{:.4g}</td>",
                                            row["step"].get<int>(), row["loss"].get<double>())));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("finished after 12 steps"), HasSubstr("<h2>Curves</h2>"),
                          HasSubstr("<b>Validation loss</b>"), HasSubstr("forward and backward passes"),
                          HasSubstr("checkpoints"), HasSubstr("<dt>" + family_.title + "</dt><dd>")));
  EXPECT_THAT(page, AllOf(HasSubstr("<td>7</td>"), HasSubstr("1 rank, 1 node")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("What is missing")), Not(HasSubstr("<h2>GPUs</h2>"))));
  const std::string both = page_of({run_, other});
  EXPECT_THAT(both,
              AllOf(HasSubstr("<h1>run and 1 other run</h1>"), HasSubstr("<h2>The runs</h2>"),
                    HasSubstr("<h2>What differs</h2>"), HasSubstr("<th scope=\"row\">learning-rate</th><td>0.01")));
  EXPECT_THAT(both, HasSubstr(">" + family_.title + "</th>"));
  EXPECT_THAT(both, HasSubstr(">loss</th><th scope=\"col\" class=\"n\">median " + family_.work + "/s</th>"));
  EXPECT_THAT(both, Not(HasSubstr("<th scope=\"row\">max-length</th>")));
  EXPECT_EQ(report({run_, run_}).exit_code, 2);
  // A report in the run's directory is not a foreign file.
  ASSERT_EQ(run_mylos({"report", other, "--output", other / "report.html"}).exit_code, 0);
  EXPECT_EQ(train(other, {"--steps", "1", "--overwrite"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(other / "report.html"));
  if (&family_ != &bert_family()) return;
  const json results = read_json(run_ / "results.json");
  EXPECT_THAT(page, HasSubstr(fmt::format("<dt>F1</dt><dd>{:.2f}<small>", results["f1"].get<double>())));
  EXPECT_THAT(page, HasSubstr(fmt::format("<dt>Exact match</dt><dd>{:.2f}<small>", results["exact"].get<double>())));
  EXPECT_THAT(page, AllOf(HasSubstr("<h2>Answers that changed</h2>"), HasSubstr("From step 3 to step 12, "),
                          HasSubstr("<h2>Worst errors</h2>")));
  EXPECT_THAT(both,
              AllOf(HasSubstr("From run to other, "),
                    HasSubstr(">efficiency</th><th scope=\"col\" class=\"n\">F1</th>"
                              "<th scope=\"col\" class=\"n\">exact</th><th scope=\"col\" class=\"n\">loss</th>")));
}

MYLOS_FOR_EACH_FAMILY(ReportOfFamily);

TEST_F(Report, ShowsTheMetricsAndTheWorkThatTheRunNames) {
  write_image_run(run_);
  const std::string page = page_of({run_});
  EXPECT_THAT(page, AllOf(HasSubstr("<dt>Accuracy</dt><dd>87.65<small>of best/"),
                          HasSubstr("<dt>Perplexity</dt><dd>11.2500<small>the least"),
                          HasSubstr("<dt>Speed</dt><dd>192<small>images/s, median step; 192 over"),
                          HasSubstr("<b>Speed</b> <span>images/s, all ranks</span>")));
  EXPECT_LT(page.find("<b>Validation loss</b>"), page.find("<b>Perplexity</b>"));
  EXPECT_LT(page.find("<b>Perplexity</b>"), page.find("<b>Accuracy</b>")) << "in the order of the run's metrics";
  EXPECT_THAT(page, AllOf(Not(HasSubstr("tokens/s")), Not(HasSubstr("F1"))));
}

TEST_F(Report, ComparesRunsByTheMetricsAndTheWorkThatTheyName) {
  const fs::path other = directory_ / "other", text = directory_ / "text";
  write_image_run(run_);
  write_image_run(other);
  const std::string page = page_of({run_, other});
  EXPECT_THAT(page,
              AllOf(HasSubstr(">efficiency</th><th scope=\"col\" class=\"n\">Accuracy</th>"
                              "<th scope=\"col\" class=\"n\">Perplexity</th><th scope=\"col\" class=\"n\">loss</th>"
                              "<th scope=\"col\" class=\"n\">median images/s</th>"),
                    HasSubstr("<th scope=\"col\" class=\"n\">training</th><th scope=\"col\" class=\"n\">epoch</th>"),
                    HasSubstr("<td class=\"n\">0:01</td><td class=\"n\">0:20</td><td class=\"n\">2</td>"),
                    HasSubstr("<td class=\"n\">87.65</td><td class=\"n\">12.5</td>"),
                    HasSubstr("images/s are the median step&#39;s, and all images over the training time"),
                    HasSubstr("Accuracy (%) and Perplexity are the last evaluation&#39;s, the loss is the mean")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("tokens/s")), Not(HasSubstr("F1"))));
  write_run(text, 1, true);
  write_file(text / "metrics.jsonl", step_line(1) + R"({"step": 1, "exact": 2.5, "f1": 3.5, "best": true})" + "\n");
  const std::string mixed = page_of({run_, text});
  EXPECT_THAT(mixed,
              AllOf(HasSubstr(">median rate</th>"), HasSubstr(">192 images/s</td>"), HasSubstr(">2000 tokens/s</td>"),
                    HasSubstr("<span>images/s, all ranks</span>"), HasSubstr("<span>tokens/s, all ranks</span>"),
                    HasSubstr(">F1</th>"), HasSubstr(">Accuracy</th>"), HasSubstr(">3.50</td>")));
}

TEST_F(Report, RunsThatAnsweredOtherQuestionsHaveNoneInCommon) {
  const fs::path other = directory_ / "other";
  for (const auto& [run, id] : {std::pair(run_, "q01"), std::pair(other, "q02")}) {
    write_run(run, 1, true);
    write_file(run / "metrics.jsonl", step_line(1) + R"({"step": 1, "f1": 3.5, "best": true})" + "\n");
    write_file(run / "evaluations/1.json", json({{id, {"red", 0.5}}}).dump());
  }
  EXPECT_THAT(page_of({run_, other}), HasSubstr("run and other answered no question in common."));
}

TEST_F(Report, DifferencesAreThoseOfWholeValues) {
  const fs::path other = directory_ / "other";
  const std::string begin(200, 'x');
  const auto write = [&](const fs::path& run, const char* end, const char* provider) {
    write_run(run, 1, true, {{"order", {1, begin, end}}, {"resolved", {{"gemm", {{"default", provider}}}}}});
    write_file(run / "metrics.jsonl", step_line(1));
  };
  write(run_, "one", "onednn");
  write(other, "two", "kokkos-kernels");
  EXPECT_THAT(page_of({run_, other}),
              AllOf(HasSubstr("&quot;one&quot;]</td>"), HasSubstr("&quot;two&quot;]</td>"),
                    HasSubstr("<th scope=\"row\">gemm.default (resolved)</th><td>onednn</td><td>kokkos-kernels</td>")));
  write(other, "one", "onednn");
  EXPECT_THAT(page_of({run_, other}), HasSubstr("The runs had the same options and resolved the same defaults."));
}

TEST_F(Report, WithoutRunJsonShowsTheOtherFiles) {
  const fs::path good = directory_ / "good";
  write_run(good, 2, true);
  write_file(good / "metrics.jsonl", step_line(1) + step_line(2));
  fs::create_directories(run_);
  write_file(run_ / "metrics.jsonl", step_line(1) + step_line(2));
  write_file(run_ / "evaluations/1.json", R"({"q01": ["red", 0.5]})");
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("contains no run.json"), HasSubstr("<b>Training loss</b>"),
                                     HasSubstr("2 of an unknown number of steps")));
  write_file(run_ / "run.json", "");
  EXPECT_THAT(page_of({good, run_}), AllOf(HasSubstr("run.json: the file is empty"), HasSubstr("<h2>The runs</h2>")));
}

TEST_F(Report, SaysHowARunEndedAndWhatItsMetricsLack) {
  write_run(run_, 1695, false);
  json run = read_json(run_ / "run.json");
  run["state"]["ended"] = "ended by SIGTERM";
  write_file(run_ / "run.json", run.dump());
  write_file(run_ / "metrics.jsonl", step_line(1) + step_line(4));
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("not finished: 4 of 1,695 steps, ended by SIGTERM"),
                                     HasSubstr("metrics.jsonl has 2 of 4 steps.")));
  write_run(run_, 1695, true);
  EXPECT_THAT(page_of({run_}), HasSubstr("metrics.jsonl has 2 of 1,695 steps."));
  write_run(run_, 1695, true, {{"patience", 2}});
  EXPECT_THAT(page_of({run_}), HasSubstr("metrics.jsonl has 2 of 4 steps."));
}

TEST_F(Report, TheLossIsThatOfManyStepsAndTheSpeedAlsoTheMean) {
  write_run(run_, 60, true);
  std::string metrics;
  for (std::size_t step = 1; step <= 60; ++step) {
    json row = json::parse(step_line(step, step <= 10 ? 100.0 : 2.0));
    row["seconds"] = step == 1 ? 30.5 : 0.5;  // the first one is 30 s longer
    metrics += row.dump() + "\n";
  }
  write_file(run_ / "metrics.jsonl", metrics);
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("<dd>2.0000<small>mean of the last 50 steps"),
                                     HasSubstr("<dd>2000<small>tokens/s, median step; 1000 over the training time")));
}

TEST_F(Report, AnAnswerInTheRightSentenceIsNotShownInAnother) {
  // Positions count code points; the first one has two bytes.
  const fs::path dev = write_question("Ä fox sat. The red fox ran. A dog slept.", "a", "who?", "The red fox", 11);
  write_run(run_, 1, true, {{"dev", dev.string()}});
  write_file(run_ / "metrics.jsonl", step_line(1) + R"({"step": 1, "f1": 3.5, "best": true})" + "\n");
  write_file(run_ / "evaluations/1.json", R"({"a": ["fox ran", 0.5]})");
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("<mark>The red fox</mark> ran."), Not(HasSubstr("class=\"p\">"))));
  write_file(run_ / "evaluations/1.json", R"({"a": ["dog", 0.5]})");
  EXPECT_THAT(page_of({run_}), HasSubstr("A <mark class=\"p\">dog</mark> slept."));
}

/// Checks in a browser, on screens of three widths and on paper, that nothing is cut off or overlaps.
TEST_F(Report, FitsScreensAndPaper) {
  if (run_process({"sh", "-c", "command -v chromium"}).exit_code != 0) GTEST_SKIP() << "no chromium is installed";
  Words runs;
  for (const char* name : {"replicated", "sharded-gradients-on-many-nodes", "c", "d"}) {
    const fs::path run = directory_ / name;
    write_run(run, 1200, true,
              {{"seed", runs.size()}, {"dev", "/a/long/name/without/any/blank/" + std::string(name)}, {"clip", 1.0}});
    std::string metrics;
    for (std::size_t step = 1; step <= 200; ++step) {
      json row = json::parse(step_line(step, 1.0 + static_cast<double>(step * 7919 % 1000) / 1000.0));
      row["time"] = 1.7e9 + static_cast<double>(step);
      row["tokens_per_second"] = 123456.0 + static_cast<double>(step * 1000);
      metrics += row.dump() + "\n";
    }
    metrics += R"({"step": 200, "f1": 84.25, "exact": 76.5, "validation_loss": 1.25, "seconds": 3.5, "best": true})";
    write_file(run / "metrics.jsonl", metrics + "\n");
    write_file(run / "evaluations/100.json", R"({"q01": ["red", 0.5]})");
    write_file(run / "evaluations/200.json", R"({"q01": ["blue", 0.5]})");
    runs.push_back(run);
  }
  const fs::path one = directory_ / "one.html", several = directory_ / "several.html";
  ASSERT_EQ(run_mylos({"report", runs.front(), "--output", one}).exit_code, 0);
  ASSERT_EQ(run_mylos({"report", runs[0], runs[1], runs[2], runs[3], "--output", several}).exit_code, 0);
  const ProcessResult checked =
      run_process({"timeout", "100", "python3", MYLOS_REPORT_LAYOUT, one.string(), several.string()});
  EXPECT_EQ(checked.exit_code, 0) << checked.errors;
  EXPECT_EQ(checked.output, "");
}

TEST_F(Report, ARunThatBeganShowsWhatThereIs) {
  write_run(run_, 100, false);
  const std::string page = page_of({run_});
  EXPECT_THAT(page, AllOf(HasSubstr("not finished: 0 of 100 steps"), HasSubstr("metrics.jsonl does not exist"),
                          HasSubstr("No evaluation has finished yet"), HasSubstr("<td>42</td>")));
}

TEST_F(Report, ABrokenRunShowsWhatThereIs) {
  write_run(run_, 100, false);
  write_file(run_ / "metrics.jsonl",
             step_line(1) + step_line(2, nullptr) + "[1]\n" +
                 R"({"step": 2, "validation_loss": null, "exact": null, "f1": 3.5, "seconds": 1.0, "best": true})" +
                 "\n" + R"({"step": 3, "lo)");
  write_file(run_ / "results.json", "{");
  write_file(run_ / "evaluations/2.json", "{");
  write_file(run_ / "evaluations/3.json", R"({"q01": ["red", 0.5]})");
  const std::string page = page_of({run_});
  EXPECT_THAT(page, AllOf(HasSubstr("2 lines of metrics.jsonl could not be read"),
                          HasSubstr("The loss is not a finite number in 1 step, the first of them step 2."),
                          HasSubstr("results.json is not valid JSON"), HasSubstr("evaluations/2.json: not JSON"),
                          HasSubstr("Values that are not finite: 1"), HasSubstr("<b>Training loss</b>")));
}

/// Neither numbers beyond reason nor values of other types.
TEST_F(Report, WhatIsNoNumberIsNotShownAsOne) {
  write_run(run_, 3, true);
  json row = json::parse(step_line(2, 1e308));
  row["memory"] = row["seconds"] = 1e308;
  row["sent"] = -1;
  write_file(run_ / "metrics.jsonl",
             step_line(1) + row.dump() + "\n" + step_line(18446744073709551615u) + step_line(4));
  const std::string page = page_of({run_});
  EXPECT_THAT(page, HasSubstr("2 lines of metrics.jsonl could not be read"));
  EXPECT_FALSE(std::regex_search(page, std::regex("[0-9]{40}"))) << "a number of hundreds of digits";
  write_run(run_, 3, true, {{"clip", "x"}, {"resolved", nullptr}, {"program", 3}});
  write_file(run_ / "metrics.jsonl", R"({"step": 1, "tokens": "x", "loss": "y", "seconds": [], "memory": {}})"
                                     "\n");
  EXPECT_THAT(page_of({run_}), HasSubstr("The loss is not a finite number"));
}

TEST_F(Report, TextOfFilesIsNoMarkup) {
  const std::string evil = "<script>alert(\"1\")</script>";
  const fs::path dev = write_question(evil + " is not & never run.", evil, evil + "?", evil, 0);
  write_run(run_, 2, true, {{"dev", dev.string()}, {"model", evil}});
  write_file(run_ / "metrics.jsonl", step_line(1) + json({{"step", 1}, {evil, 1.5}, {"best", true}}).dump() + "\n");
  write_file(run_ / "evaluations/1.json", json({{evil, {"never <b>", 0.5}}}).dump());
  write_file(run_ / "evaluations/2.json", json({{evil, {evil + " is", 0.5}}}).dump());
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("<p class=\"q\">&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;?</p>"),
                                     HasSubstr("never &lt;b&gt;")));
}

TEST_F(Report, QuestionsThatAreGoneAreShownById) {
  write_run(run_, 2, true, {{"dev", "/nowhere/dev.json"}});
  write_file(run_ / "metrics.jsonl", step_line(1) + step_line(2));
  write_file(run_ / "evaluations/1.json", R"({"q01": ["red", 0.5], "q02": ["fox", 0.5]})");
  write_file(run_ / "evaluations/2.json", R"({"q01": ["fox", 0.5], "q02": ["fox", 0.5]})");
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("1 of 2 answers changed"), HasSubstr("question <code>q01</code>"),
                                     HasSubstr("/nowhere/dev.json no longer exists")));
  const fs::path pipe = directory_ / "dev.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  write_run(run_, 2, true, {{"dev", pipe.string()}});
  EXPECT_THAT(page_of({run_}), HasSubstr("question <code>q01</code>")) << "without waiting for the pipe";
}

TEST_F(Report, ALongRunIsASmallPage) {
  constexpr std::size_t steps = 10'000;
  write_run(run_, steps, true, {{"dev", nullptr}});
  std::string metrics;
  json row = json::parse(step_line(1));
  for (std::size_t step = 1; step <= steps; ++step) {
    row["step"] = step;
    row["loss"] = 1.0 + static_cast<double>(step * 7919 % 1000) / 1000.0;
    row["gradient_norm"] = static_cast<double>(step * 104729 % 997);
    row["tokens_per_second"] = 1000.0 + static_cast<double>(step * 31 % 499);
    metrics += row.dump() + "\n";
  }
  write_file(run_ / "metrics.jsonl", metrics);
  const std::string page = page_of({run_});
  EXPECT_LT(page.size(), 1u << 20);
  EXPECT_THAT(page, HasSubstr("10,000"));
}

TEST_F(Report, OfGpusHasTheirEnergyOverAllStarts) {
  write_run(run_, 3, true);
  write_file(run_ / "metrics.jsonl", step_line(1));
  const auto sample = [](double time, double energy) {
    return json({{"time", time},
                 {"step", 1},
                 {"gpus",
                  {{{"index", 0},
                    {"name", "NVIDIA A100"},
                    {"utilization", 50.0},
                    {"memory", 1e9},
                    {"memory_total", 4e10},
                    {"power", 300.0},
                    {"energy", energy}}}}})
               .dump() +
           "\n";
  };
  // Two starts of 1.8 MJ, half a kilowatt-hour, each.
  write_file(run_ / "gpus/node1.jsonl", sample(100, 0) + sample(102, 1.8e6) + sample(9000, 0) + sample(9002, 1.8e6));
  EXPECT_THAT(page_of({run_}), AllOf(HasSubstr("<h2>GPUs</h2>"), HasSubstr("<dd>1 kWh<small>of the GPUs"),
                                     HasSubstr("node1/0"), HasSubstr("NVIDIA A100")));
}

TEST_F(Report, ShowsKernelsThatBenchMeasured) {
  write_run(run_, 3, true);
  const ProgramRun bench = run_mylos({"bench", "step", "--model", model_, "--data", train_, "--batch", "4", "--repeats",
                                      "1", "--max-length", "60", "--doc-stride", "20", "--breakdown", "--json"});
  ASSERT_EQ(bench.exit_code, 0) << bench.errors;
  write_file(directory_ / "kernels.json", bench.output);
  const std::string page = page_of({run_, "--kernels", directory_ / "kernels.json"});
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  for (const json& row : json::parse(bench.output)["breakdown"]["kernels"]) {
    const json& roofline = row["share_of_roofline"];  // null if no formula covers the kernel
    const std::string share =
        roofline.is_null() ? "\xe2\x80\x93" : fmt::format("{:.0f} %", 100.0 * roofline.get<double>());
    const std::string cells =
        fmt::format(">{:.3f}</td><td class=\"n\">{:.1f} %</td><td class=\"n\">{}</td>",
                    1e3 * row["seconds"].get<double>(), 100.0 * row["share_of_step"].get<double>(), share);
    EXPECT_THAT(page, HasSubstr(cells)) << row["name"];
  }
}

TEST_F(Report, ReplacesAReportAndNothingElse) {
  write_run(run_, 3, true);
  page_of({run_});
  page_of({run_});
  write_file(page_, "a letter");
  const ProgramRun refused = report({run_});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(
      refused.errors,
      HasSubstr("report.html: exists and is not a report; choose another name, or replace it with --overwrite"));
  EXPECT_EQ(read_file(page_), "a letter");
  EXPECT_THAT(run_mylos({"report", run_, "--output", directory_.path()}).errors, HasSubstr("is not a file"));
}

TEST_F(Report, BadInput) {
  const ProgramRun none = report({directory_ / "nothing"});
  EXPECT_EQ(none.exit_code, 1);
  ASSERT_EQ(none.error_lines().size(), 1u) << none.errors;
  EXPECT_THAT(none.errors, HasSubstr("nothing: contains no run.json"));
  EXPECT_FALSE(fs::exists(page_));
  EXPECT_EQ(run_mylos({"report"}).exit_code, 2);
  write_run(run_, 3, true);
  write_file(run_ / "evaluations/5.json", "{}");
  const ProgramRun unknown = report({run_, "--between", "5,7"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("no answers were kept after step 7, only after steps 5"));
  EXPECT_THAT(report({run_, "--between", "5"}).errors, HasSubstr("two different steps"));
  write_run(directory_ / "other", 3, true);
  const ProgramRun several = report({run_, directory_ / "other", "--between", "5,7"});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_THAT(several.errors, HasSubstr("--between compares evaluations of one run"));
  const std::string kernels = directory_ / "kernels.json";
  const auto error = [&](const std::string& printed) {
    write_file(kernels, printed);
    return report({run_, "--kernels", kernels}).errors;
  };
  const std::string origin = "--kernels " + kernels + ", expected from mylos bench step --breakdown --json: ";
  EXPECT_THAT(error(R"({"seconds": 1})"), HasSubstr(origin + "the key 'breakdown' is missing"));
  EXPECT_THAT(error(R"({"breakdown": {"kernels": [1]}})"),
              HasSubstr(origin + "breakdown.kernels[0]: expected object, found number"));
  EXPECT_THAT(error(R"({"breakdown": {"kernels": [{"name": 3}]}})"), HasSubstr(origin + "breakdown.kernels[0]"));
}

}  // namespace
}  // namespace mylos::tests
