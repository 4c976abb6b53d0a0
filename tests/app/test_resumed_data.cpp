#include "data/images/image_marks.hpp"
#include "tests/app/image_runs.hpp"
#include "tests/app/resumed_runs.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

/// Resumption of runs whose data files were edited, moved or reformatted.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ResumedData : public ResumedRuns {
 protected:
  void SetUp() override {
    ResumedRuns::SetUp();
    if (IsSkipped()) return;
    write_file(dev_, tiny_questions());
    write_file(order_, order_text({"q01", "q02", "q03", "q11"}) + order_text({"q12", "q13", "q21", "q22"}));
    ASSERT_EQ(start().exit_code, 0);
    interrupt(run_, 4);
  }

  static std::string order_text(const Words& ids) {
    json step = json::array();
    for (const std::string& id : ids) step.push_back({id, 0});
    return step.dump() + "\n";
  }
  ProgramRun start(const Words& more = {}) const {
    Words all = joined({"--dev", dev_, "--order", order_, "--checkpoint-every", "1", "--keep", "20"}, more);
    return train(run_, all);
  }
  /// Expects that the file is rejected with `text`, and accepted again with its old content.
  void expect_noticed(const fs::path& file, const std::string& text) const {
    const std::string before = read_file(file), metrics_before = read_file(run_ / "metrics.jsonl");
    write_file(file, text);
    expect_refused(start(), file.string() + ": its data differ from those that the run of ");
    EXPECT_EQ(read_file(run_ / "metrics.jsonl"), metrics_before);
    write_file(file, before);
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
  }

  fs::path order_ = directory_ / "order.jsonl";
};

TEST_F(ResumedData, EditedIsRefusedAndLaidOutAnewIsTheSame) {
  const std::string questions = tiny_questions();
  expect_noticed(train_, replaced(questions, "the red fox runs far", "the red fox digs far"));
  expect_noticed(dev_, replaced(questions, "the red fox runs far", "the red fox runs off"));
  json answered = json::parse(questions);  // changes no window, but changes scores
  answered["data"][0]["paragraphs"][0]["qas"][0]["answers"].push_back({{"text", "fox"}, {"answer_start", 8}});
  expect_noticed(dev_, answered.dump());
  expect_noticed(order_, order_text({"q12", "q13", "q21", "q22"}) + order_text({"q01", "q02", "q03", "q11"}));
  write_file(train_, replaced(questions, "stars burn gas", "stars turn gas"));
  expect_refused(train(directory_ / "other", {"--dev", dev_, "--order", order_, "--resume", run_}),
                 train_.string() + ": its data differ from those that the run of ");
  EXPECT_FALSE(fs::exists(directory_ / "other" / "run.json"));

  // The same data, laid out anew or prepared.
  const fs::path moved = directory_ / "moved.json", features = directory_ / "features.h5";
  write_file(moved, json::parse(questions).dump(4));
  ASSERT_EQ(run_mylos({"prepare", "--model", model_, "--data", dev_, "--output", features, "--max-length", "60",
                       "--doc-stride", "20"})
                .exit_code,
            0);
  write_file(order_, replaced(read_file(order_), ",0],", " ,  0],"));
  const ProgramRun run = start({"--train", moved, "--dev", features});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 4, from "));
  interrupt(run_, 4);
  expect_refused(train(run_, {"--dev", dev_}), "order " + order_.string() + ", now unset");
}

/// A run on eight pictures that stopped after its second step of four. Each epoch has two steps.
class ResumedImages : public ImageRuns {
 protected:
  void SetUp() override {
    ImageRuns::SetUp();
    write_small_classifier(model_, 2, 3);
    write_coloured_pictures(pictures_);
  }
  void start() const { ASSERT_EQ(train(run_, words(pictures_)).exit_code, 0); }
  static Words words(const fs::path& data) {
    Words all = {"--train", data, "--dev", data, "--image-size", "16"};
    for (const char* word : {"--batch", "4", "--batch-norm-group", "2", "--steps", "4", "--checkpoint-every", "2"}) {
      all.emplace_back(word);
    }
    return all;
  }
  /// Goes on in another directory with these data.
  ProgramRun resume(const fs::path& data, const Words& more = {}) const {
    Words all = joined(words(data), {"--resume", run_ / "checkpoints/step-000002.h5"});
    all.insert(all.end(), more.begin(), more.end());
    fs::remove_all(directory_ / "other");
    return train(directory_ / "other", all);
  }
  void expect_same_end(const ProgramRun& run) const {
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_EQ(read_file(directory_ / "other/last/model.safetensors"), read_file(run_ / "last/model.safetensors"));
  }
  void prepare(const fs::path& data, const fs::path& file) const {
    const ProgramRun run = run_mylos({"prepare", "--task", "image-classification", "--data", data, "--output", file});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
  }
  void write_black_pictures() const {
    for (const auto& entry : fs::recursive_directory_iterator(pictures_)) {
      if (entry.is_regular_file()) write_file(entry.path(), coloured_picture(0));
    }
  }
};

TEST_F(ResumedImages, ReplacedByBlackOnesAreRefused) {
  start();
  const fs::path whole = directory_ / "whole";
  fs::copy(pictures_, whole, fs::copy_options::recursive);
  write_black_pictures();
  expect_refused(resume(pictures_), "--train " + pictures_.string() +
                                        ": 8 pictures differ from those that the run read before, the first: " +
                                        (pictures_ / "cats/0.png").string() + "; restore them, or start over with");
  expect_refused(resume(pictures_, {"--train", whole}),
                 "--dev " + pictures_.string() + ": 8 pictures differ from those that the run read before");
  EXPECT_FALSE(fs::exists(directory_ / "other/metrics.jsonl"));
  prepare(pictures_, directory_ / "black.h5");
  expect_refused(resume(directory_ / "black.h5"), "black.h5, image 0 (cats/0.png)");
  for (const char* notes : {"pictures-train", "pictures-dev"}) fs::remove(run_ / "checkpoints" / notes);
  EXPECT_THAT(resume(pictures_).errors, HasSubstr("goes on after step 2")) << "as from a version that kept no notes";
}

TEST_F(ResumedImages, CopiedOrPreparedAreTheSame) {
  start();
  const fs::path copied = directory_ / "copied", prepared = directory_ / "pictures.h5";
  fs::copy(pictures_, copied, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(copied)) {
    fs::last_write_time(entry, fs::last_write_time(entry) - std::chrono::hours(1));
  }
  expect_same_end(resume(copied));
  prepare(pictures_, prepared);
  expect_same_end(resume(prepared));
  const fs::path from_file = directory_ / "from-file";
  ASSERT_EQ(train(from_file, words(prepared)).exit_code, 0);
  write_file(pictures_ / "cats/0.png", coloured_picture(0));
  Words back = words(pictures_);  // the file has no times, so that its pictures are compared as they are read
  back.insert(back.end(), {"--resume", from_file / "checkpoints/step-000002.h5"});
  expect_refused(train(directory_ / "back", back), "cats/0.png has changed since the run first read it");
}

/// The size and the time of a file only tell whether to read it again at start.
TEST_F(ResumedImages, ReplacedWithTheSameSizeAndTimeAreNoticedWhenTheyAreRead) {
  start();
  const fs::path file = pictures_ / "dogs/1.png";
  write_file(file, coloured_picture(0));
  for (const char* name : {"pictures-train", "pictures-dev"}) {
    const fs::path notes = run_ / "checkpoints" / name;
    data::ImageMarks marks(8);
    ASSERT_TRUE(marks.read(read_file(notes)));
    marks.note(5, data::mark_of(marks[5].checksum, data::file_stamp(file)));
    write_file(notes, marks.text());
  }
  const ProgramRun run = resume(pictures_);
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 2"));
  expect_refused(run, "dogs/1.png has changed since the run first read it; restore it, or start the run over");
}

/// A start does not take longer the more pictures there are: it opens none but those of its steps.
TEST_F(ResumedImages, NoPictureIsOpenedBeforeAStepNeedsIt) {
  if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  const fs::path many = directory_ / "many", record = directory_ / "calls";
  for (const auto& entry : fs::recursive_directory_iterator(pictures_)) {
    if (!entry.is_regular_file()) continue;
    const fs::path to = many / entry.path().parent_path().filename();
    fs::create_directories(to);
    for (int i = 0; i < 25; ++i)
      fs::copy_file(entry, to / (std::to_string(i) + "-" + entry.path().filename().string()));
  }
  const auto opened = [&](const fs::path& output, const Words& more) {
    const EnvironmentVariable library("LD_PRELOAD", file_faults_library()), file("MYLOS_FILE_CALLS", record.string()),
        under("MYLOS_FILE_CALLS_UNDER", fs::canonical(many).string() + "/");
    Words all = joined(words(fs::canonical(many)), {"--dev", "synthetic:2x16x16", "--labels", "2"});
    all.insert(all.end(), more.begin(), more.end());
    write_file(record, "");
    const ProgramRun run = train(output, all);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    std::istringstream calls(read_file(record));
    std::set<std::string> files;
    for (std::string line; std::getline(calls, line);) {
      if (line.find("\topen\t") != std::string::npos && line.find(".png") != std::string::npos) files.insert(line);
    }
    return files.size();
  };
  EXPECT_EQ(opened(directory_ / "first", {"--dry-run"}), 0u);
  EXPECT_EQ(opened(directory_ / "first", {}), 16u) << "4 steps of 4 pictures, of 200";
  EXPECT_EQ(opened(directory_ / "second", {"--resume", directory_ / "first/checkpoints/step-000002.h5"}), 8u);
}

TEST_F(ResumedImages, NotYetReadMayStillChange) {
  const Words first = {"--dev", "synthetic:2x16x16", "--labels", "2", "--steps", "1", "--checkpoint-every", "1"};
  Words all = joined(words(pictures_), first);
  ASSERT_EQ(train(run_, all).exit_code, 0);
  EXPECT_FALSE(fs::exists(run_ / "checkpoints/pictures-dev"));
  data::ImageMarks marks(8);
  ASSERT_TRUE(marks.read(read_file(run_ / "checkpoints/pictures-train")));
  std::size_t read = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if (marks[i].checksum != 0) {
      ++read;
    } else {
      write_file(pictures_ / (i < 4 ? "cats" : "dogs") / (std::to_string(i % 4) + ".png"), coloured_picture(0));
    }
  }
  EXPECT_LT(read, 8u);
  all.insert(all.end(), {"--steps", "4", "--extend"});
  const ProgramRun run = train(run_, all);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  write_file(run_ / "checkpoints/pictures-train", "no marks");
  all.insert(all.end(), {"--steps", "6"});
  expect_refused(train(run_, all), "pictures-train is damaged; remove it to go on without comparing the pictures");
}

TEST_F(ResumedImages, InMemoryAreComparedByEveryByte) {
  write_small_classifier(model_);
  write_small_digits(digits_, 300, 20);
  const Words more = {"--steps", "2", "--checkpoint-every", "1"};
  ASSERT_EQ(train(directory_ / "digits-run", more).exit_code, 0);
  std::string images = read_file(digits_ / "train-images-idx3-ubyte");
  images[16 + 144 + 5] ^= 1;  // the checksum of versions that kept no notes does not cover the second image
  write_file(digits_ / "train-images-idx3-ubyte", images);
  Words on = joined(more, {"--resume", directory_ / "digits-run/checkpoints/step-000001.h5"});
  expect_refused(train(directory_ / "other", on), "train-images-idx3-ubyte, image 1; restore them");
}

}  // namespace
}  // namespace mylos::tests
