#include "data/huggingface/safetensors.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/written_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

/// The order of the program's file operations, recorded by a preloaded library. After a machine crash, each file with
/// its final name must be complete, and nothing may be removed before its replacement is safe.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

struct FileCall {
  int process = 0;
  std::string name, path, target;  ///< as file_faults.cpp records them
};

std::vector<FileCall> read_calls(const fs::path& file) {
  std::vector<FileCall> calls;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream columns(line);
    FileCall call;
    columns >> call.process;
    columns.ignore(1);
    std::getline(columns, call.name, '\t');
    std::getline(columns, call.path, '\t');
    std::getline(columns, call.target);
    calls.push_back(call);
  }
  return calls;
}

bool is_in(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

/// Reports what a crash could lose of the files that are renamed to their final names.
class CrashCheck {
 public:
  void add(const FileCall& call) {
    if (call.name == "write") unflushed_[call.path].insert(call.process);
    if (call.name == "fsync") {
      unflushed_[call.path].erase(call.process);
      changed_.erase(call.path);
    }
    if (call.name == "rename") rename(call);
    if (call.name == "remove") check_changed(call.path);
  }
  void end() {
    for (const auto& [directory, change] : changed_) losses.insert(directory + ": never flushed after " + change);
  }

  std::set<std::string> losses;

 private:
  void rename(const FileCall& call) {
    for (const auto& [file, processes] : unflushed_) {
      if (is_in(file, call.path) && !processes.empty()) losses.insert(file + ": not flushed before " + text_of(call));
    }
    for (const auto& [directory, change] : changed_) {
      if (is_in(directory, call.path)) losses.insert(directory + ": not flushed before " + text_of(call));
    }
    const fs::path metrics = fs::path(call.target).parent_path().parent_path() / "metrics.jsonl";
    if (fs::path(call.target).extension() == ".h5" && !unflushed_[metrics].empty()) {
      losses.insert(metrics.string() + ": not flushed before " + text_of(call) + ", which refers to its lines");
    }
    check_changed(call.target);
    changed_[fs::path(call.target).parent_path()] = text_of(call);
  }
  /// Another change in a directory may reach the disk before an unflushed rename.
  void check_changed(const std::string& path) {
    for (const auto& [directory, change] : changed_) {
      if (is_in(path, directory)) losses.insert(path + ": changed before " + change + " was flushed");
    }
  }
  static std::string text_of(const FileCall& call) { return "the rename of " + call.path + " to " + call.target; }

  std::map<std::string, std::set<int>> unflushed_;  ///< files, with the processes that wrote to them
  std::map<std::string, std::string> changed_;      ///< directories, with their last rename
};

std::set<std::string> losses_in(const std::vector<FileCall>& calls) {
  CrashCheck check;
  for (const FileCall& call : calls) check.add(call);
  check.end();
  return check.losses;
}

class FileCalls : public RankRuns {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
    RankRuns::SetUp();
  }

  /// Returns the calls of one rank for each of `ranks`, in directory_.
  std::vector<FileCall> calls_of(const std::vector<Words>& ranks) const {
    const EnvironmentVariable library("LD_PRELOAD", file_faults_library()), file("MYLOS_FILE_CALLS", record_.string()),
        under("MYLOS_FILE_CALLS_UNDER", fs::canonical(directory_.path()));
    fs::remove(record_);
    const ProgramRun run = run_on(ranks);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return read_calls(record_);
  }

  /// Returns the targets of renames, relative to directory_.
  Words renamed(const std::vector<FileCall>& calls) const {
    Words names;
    for (const FileCall& call : calls) {
      if (call.name == "rename") names.push_back(fs::relative(call.target, fs::canonical(directory_.path())));
    }
    return names;
  }

  fs::path record_ = directory_ / "record";
};

TEST_F(FileCalls, ARunLosesNothingWhereTheMachineCrashes) {
  for (const std::size_t ranks : {1, 2}) {
    const fs::path run = directory_ / ("run" + std::to_string(ranks));
    const Words words =
        train_words(run, {"--steps", "4", "--checkpoint-every", "2", "--eval-every", "2", "--keep", "1"});
    const std::vector<FileCall> calls = calls_of(std::vector<Words>(ranks, words));
    EXPECT_THAT(losses_in(calls), IsEmpty());
    for (const char* name : {"run.json", "checkpoints/step-000002.h5", "checkpoints/step-000004.h5",
                             "checkpoints/latest", "best", "last"}) {
      EXPECT_THAT(renamed(calls), Contains(run.filename() / name)) << ranks;
    }
  }
}

/// So that a thousand ranks do not open the same small files.
TEST_F(FileCalls, OneRankReadsTheFilesThatAllNeed) {
  const fs::path settings = directory_ / "settings.json";
  write_file(settings, "{}");
  const Words words = train_words(run_, {"--steps", "2", "--mode", "sharded", "--config", settings});
  std::map<fs::path, std::set<int>> readers;  // processes
  for (const FileCall& call : calls_of(std::vector<Words>(3, words))) {
    if (call.name == "open") readers[call.path].insert(call.process);
  }
  const fs::path directory = fs::canonical(directory_.path());
  for (const char* file : {"settings.json", "model/config.json", "model/vocab.txt", "train.json", "dev.json"}) {
    EXPECT_EQ(readers[directory / file].size(), 1u) << file;
  }
  EXPECT_EQ(readers[directory / "model/model.safetensors"].size(), 3u) << "each rank reads the values that it owns";
}

/// Moves a tensor of a model's weights to a file of its own, apart.safetensors.
void move_apart(const fs::path& model, const std::string& name) {
  const fs::path weights = model / "model.safetensors";
  std::vector<std::vector<float>> values;
  std::vector<data::NamedTensor> rest, apart;
  json map;
  {
    const data::SafetensorsFile whole(FileReader(), weights);
    values.reserve(whole.tensors().size());
    for (const data::TensorInfo& tensor : whole.tensors()) {
      const bool is_apart = tensor.name == name;
      values.push_back(whole.read_float(tensor.name));
      (is_apart ? apart : rest).push_back({tensor.name, tensor.shape, values.back()});
      map[tensor.name] = is_apart ? "apart.safetensors" : "rest.safetensors";
    }
  }
  data::write_safetensors(model / "rest.safetensors", rest);
  data::write_safetensors(model / "apart.safetensors", apart);
  write_file(model / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
  fs::remove(weights);
}

/// The tensor's two values are in the slice of one rank. The first rank also reads the headers of all files.
TEST_F(FileCalls, RanksOpenTheWeightsWhoseValuesTheyRead) {
  move_apart(model_, "qa_outputs.bias");
  const Words words = train_words(run_, {"--steps", "2", "--mode", "sharded"});
  std::map<fs::path, std::set<int>> readers;  // processes
  for (const FileCall& call : calls_of(std::vector<Words>(3, words))) {
    if (call.name == "open") readers[call.path].insert(call.process);
  }
  const fs::path model = fs::canonical(model_);
  EXPECT_EQ(readers[model / "rest.safetensors"].size(), 3u);
  EXPECT_GE(readers[model / "apart.safetensors"].size(), 1u);
  EXPECT_LE(readers[model / "apart.safetensors"].size(), 2u);
  EXPECT_EQ(readers[model / "model.safetensors.index.json"].size(), 1u);
}

TEST_F(FileCalls, ACheckpointsExportLosesNothing) {
  const ProgramRun trained = run_on(1, train_words(run_, {"--steps", "2", "--checkpoint-every", "2"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const auto calls = calls_of({{"checkpoint", "export", run_, "--output", directory_ / "run-exported"}});
  EXPECT_THAT(losses_in(calls), IsEmpty());
  EXPECT_THAT(renamed(calls), Contains("run-exported"));
}

TEST_F(FileCalls, DoctorsTrialReachesTheDisk) {
  const fs::path output = directory_ / "run";
  fs::create_directory(output);
  CrashCheck check;
  const std::vector<FileCall> calls = calls_of({{"doctor", "--output", output}});
  for (const FileCall& call : calls) check.add(call);
  EXPECT_THAT(check.losses, Not(Contains(::testing::HasSubstr("not flushed before the rename"))));
  EXPECT_FALSE(renamed(calls).empty());
}

}  // namespace
}  // namespace mylos::tests
