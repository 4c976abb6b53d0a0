#include "data/huggingface/safetensors.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/bert_model.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

/// mylos checkpoint, on generated checkpoints of a tiny model.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class CheckpointCommand : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    fs::create_directories(checkpoints_);
    for (const std::size_t step : {10, 20}) save(step);
  }

  /// Saves the tiny model. Element i of each tensor is i + `offset`; the optimizer slot is zero.
  fs::path save(std::size_t step, float offset = 0.0f, const std::string& configuration = "") const {
    const auto network = families::make_bert_question_answering(
        families::read_bert_config({FileReader(), model_ / "config.json"}), Precision::float32);
    const ParameterTable& table = network->table();
    parallel::CheckpointArrays arrays{
        .table = &table, .held = {}, .groups = {{"model", {}}, {"optimizer/m", {}}}, .state = {}, .saved_range = {}};
    for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
      const std::size_t size = table.units()[unit].size;
      arrays.held.push_back({unit, 0, size});
      for (parallel::CheckpointGroup& group : arrays.groups) group.parts.emplace_back("test::part", size);
    }
    for (const ParameterTensor& row : table.tensors()) {
      const auto values = arrays.groups[0].parts[row.unit];
      for (std::size_t i = 0; i < row.size; ++i) values(row.offset + i) = static_cast<float>(i) + offset;
    }
    arrays.saved_range = [&](std::size_t unit, std::size_t) {
      return parallel::UnitRange{0, table.units()[unit].size};
    };
    parallel::CheckpointRecord record;
    record.set("step", std::uint64_t{step});
    record.set("epoch", 0.25);
    record.set("configuration", configuration.empty() ? usual_configuration() : configuration);
    return save_checkpoint(*parallel::make_self_communicator(), checkpoints_, step, arrays, record, 5).file;
  }

  std::string usual_configuration() const {
    const json products = {{{"n", 3}, {"k", 4}}, {{"n", 5}, {"k", 6}}};
    const json resolved = {{"model", model_.string()}, {"gemm", {{"products", products}}}};
    return json{{"batch", 12}, {"dev", nullptr}, {"resolved", resolved}}.dump();
  }

  void expect_refused(const Words& words, const std::string& what, int exit_code = 1) const {
    const ProgramRun run = run_mylos(words);
    EXPECT_EQ(run.exit_code, exit_code) << run.output;
    EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr(what));
  }

  fs::path checkpoints_ = run_ / "checkpoints";
};

TEST_F(CheckpointCommand, ListsARun) {
  const ProgramRun run = run_mylos({"checkpoint", "list", run_});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, AllOf(HasSubstr("       10    0.25 "), HasSubstr("step-000020.h5  (latest)\n")));
  const json rows = json::parse(run_mylos({"checkpoint", "list", "--json", checkpoints_}).output);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["step"], 10);
  EXPECT_EQ(rows[0]["latest"], false);
  EXPECT_EQ(rows[1]["latest"], true);
  EXPECT_EQ(rows[1]["run"]["epoch"], 0.25);
  EXPECT_EQ(rows[1]["run"]["configuration"]["resolved"]["model"], model_.string());
  expect_refused({"checkpoint", "list", model_}, "model: contains no checkpoint");
}

TEST_F(CheckpointCommand, ADamagedOneIsListedWithWhatIsWrong) {
  fs::resize_file(checkpoints_ / "step-000010.h5", 5000);
  const ProgramRun run = run_mylos({"checkpoint", "list", run_});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("       10       ? "));
  EXPECT_THAT(run.errors, HasSubstr("step-000010.h5: cannot open it as HDF5: "));
}

TEST_F(CheckpointCommand, ShowsOne) {
  const ProgramRun run = run_mylos({"checkpoint", "show", run_});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, AllOf(HasSubstr("step-000020.h5\n"), HasSubstr("\nepoch                   0.25\n"),
                                HasSubstr("\n/model/qa_outputs.weight (2, 16)\n"),
                                HasSubstr("\nconfiguration.batch     12\nconfiguration.dev       null\n"),
                                HasSubstr("\nconfiguration.resolved.model " + model_.string() + "\n"),
                                HasSubstr("\nconfiguration.resolved.gemm.products[1] {\"k\":6,\"n\":5}\n"),
                                HasSubstr("\n/optimizer/m/qa_outputs.bias (2)\n")));
  const json shown = json::parse(run_mylos({"checkpoint", "show", checkpoints_ / "step-000010.h5", "--json"}).output);
  EXPECT_EQ(shown["run"]["step"], 10);
  EXPECT_EQ(shown["tensors"][0]["name"], "/model/bert.embeddings.word_embeddings.weight");
}

TEST_F(CheckpointCommand, ADeepConfigurationStaysText) {
  const std::string deep = R"({"gemm": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  save(30, 0.0f, deep);
  const ProgramRun shown = run_mylos({"checkpoint", "show", run_});
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output, HasSubstr("configuration           {\"gemm\": [[["));
  EXPECT_EQ(run_mylos({"checkpoint", "show", run_, "--json"}).exit_code, 0);
}

TEST_F(CheckpointCommand, BytesThatAreNoUtf8AreReplacedInJson) {
  const fs::path named = directory_ / "r\xffn";
  save(30, 0.0f, "{\"mode\": \"\xff\"}");
  fs::rename(run_, named);
  for (const Words& words : {Words{"show"}, Words{"list"}, Words{"verify"}}) {
    const ProgramRun run = run_mylos({"checkpoint", words[0], named, "--json"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    const json reported = json::parse(run.output, nullptr, false);
    ASSERT_FALSE(reported.is_discarded()) << run.output;
    EXPECT_THAT(run.output, HasSubstr("r\xef\xbf\xbdn/checkpoints/step-000030.h5"));
    if (words[0] == "show") EXPECT_EQ(reported["run"]["configuration"], "{\"mode\": \"\xef\xbf\xbd\"}");
  }
  const ProgramRun text = run_mylos({"checkpoint", "show", named});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
}

/// A live run may remove its oldest checkpoint during the command; a dangling link simulates this.
TEST_F(CheckpointCommand, AFileThatVanishesIsListedWithWhatIsWrong) {
  fs::create_symlink(directory_ / "gone", checkpoints_ / "step-000015.h5");
  const ProgramRun run = run_mylos({"checkpoint", "list", run_});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, AllOf(HasSubstr("       10    0.25 "), HasSubstr("       15       ?            ?  "),
                                HasSubstr("       20    0.25 ")));
  ASSERT_EQ(run.error_lines().size(), 1u) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("step-000015.h5"));
  EXPECT_THAT(run.errors, Not(HasSubstr("filesystem error")));
  const json rows = json::parse(run_mylos({"checkpoint", "list", run_, "--json"}).output);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["bytes"], nullptr);
  EXPECT_THAT(rows[1]["error"], HasSubstr("step-000015.h5"));
}

TEST_F(CheckpointCommand, APathThatIsTooLongIsOneLine) {
  for (const char* verb : {"list", "show", "verify"}) {
    const ProgramRun run = run_mylos({"checkpoint", verb, std::string(5000, 'a')});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
    EXPECT_THAT(run.errors, AllOf(HasSubstr("contains no checkpoint"), Not(HasSubstr("filesystem error"))));
  }
}

TEST_F(CheckpointCommand, EscapesOfTheConfigurationDoNotReachTheTerminal) {
  const std::string escapes = "\x1b]52;c;aGk=\x07\xc2\x9b";
  save(30, 0.0f, json{{"mode", escapes}}.dump());
  const ProgramRun shown = run_mylos({"checkpoint", "show", run_});
  EXPECT_THAT(shown.output, HasSubstr("configuration.mode      ]52;c;aGk=\n"));
  for (const char* control : {"\x1b", "\x07", "\xc2\x9b"}) EXPECT_THAT(shown.output, Not(HasSubstr(control)));
  const ProgramRun as_json = run_mylos({"checkpoint", "show", run_, "--json"});
  EXPECT_THAT(as_json.output, Not(HasSubstr("\xc2\x9b")));
  EXPECT_EQ(json::parse(as_json.output)["run"]["configuration"]["mode"], escapes) << "values stay what they are";
}

TEST_F(CheckpointCommand, VerifiesEveryByte) {
  const ProgramRun run = run_mylos({"checkpoint", "verify", run_});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("step-000010.h5: "), HasSubstr("step-000020.h5: "), HasSubstr("all checksums match")));
  const fs::path file = checkpoints_ / "step-000010.h5";
  const std::uint64_t offset = parallel::read_checkpoint_index(file).find("/optimizer/m/qa_outputs.bias")->offset;
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put('x');
  }
  expect_refused({"checkpoint", "verify", file},
                 "step-000010.h5: /optimizer/m/qa_outputs.bias, elements 0 to 2: CRC32C");
  const ProgramRun damaged = run_mylos({"checkpoint", "verify", run_, "--json"});
  EXPECT_EQ(damaged.exit_code, 1);
  const json rows = json::parse(damaged.output);
  EXPECT_EQ(rows[0]["right"], false);
  EXPECT_EQ(rows[1]["right"], true);
  expect_refused({"checkpoint", "verify", model_ / "config.json"}, "config.json is not an HDF5 file");
}

TEST_F(CheckpointCommand, ExportsAModel) {
  const fs::path exported = directory_ / "exported";
  const ProgramRun run = run_mylos({"checkpoint", "export", run_, "--output", exported});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(read_file(exported / "vocab.txt"), read_file(model_ / "vocab.txt"));
  const data::SafetensorsFile weights(FileReader(), exported / "model.safetensors");
  const std::vector<float> head = weights.read_float("qa_outputs.weight");
  ASSERT_EQ(head.size(), 32u);
  EXPECT_EQ(head[31], 31.0f);
  expect_refused({"checkpoint", "export", run_, "--output", exported}, "exported: already exists; choose a new");
  const fs::path again = directory_ / "again";
  EXPECT_EQ(run_mylos({"checkpoint", "export", run_, "--output", again, "--model", model_}).exit_code, 0);
  EXPECT_EQ(read_file(again / "model.safetensors"), read_file(exported / "model.safetensors"));
  expect_refused({"checkpoint", "export", run_}, "needs --output", 2);
  TinyModel other;
  other.hidden = 32;
  write_tiny_model(directory_ / "other", other);
  expect_refused({"checkpoint", "export", run_, "--output", directory_ / "x", "--model", directory_ / "other"},
                 "its tensors differ from those of the model in ");
  fs::remove_all(model_);
  expect_refused({"checkpoint", "export", run_, "--output", directory_ / "x"}, "give the model with --model");
}

TEST_F(CheckpointCommand, ComparesTwo) {
  const fs::path a = checkpoints_ / "step-000010.h5", b = checkpoints_ / "step-000020.h5";
  const ProgramRun equal = run_mylos({"checkpoint", "diff", a, b});
  EXPECT_EQ(equal.exit_code, 0) << equal.errors;
  EXPECT_THAT(equal.output, HasSubstr("tensors are equal, bit for bit\n"));
  const fs::path c = save(30, 0.5f);
  const ProgramRun other = run_mylos({"checkpoint", "diff", a, c});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output, HasSubstr("/model/qa_outputs.weight: 32 of 32 values differ, by at most 0.5\n"));
  const json rows = json::parse(run_mylos({"checkpoint", "diff", a, c, "--json"}).output);
  EXPECT_EQ(rows[0]["largest"], 0.5);
  EXPECT_EQ(rows.back()["equal"], true);
}

TEST_F(CheckpointCommand, RefusesWhatItDoesNotKnow) {
  expect_refused({"checkpoint", "list"}, "checkpoint: too few arguments", 2);
  expect_refused({"checkpoint", "mend", run_}, "checkpoint mend: expected list, show, verify, export or diff", 2);
  expect_refused({"checkpoint", "diff", run_}, "checkpoint diff needs two paths", 2);
  expect_refused({"checkpoint", "list", run_, run_}, "checkpoint list needs one path", 2);
  expect_refused({"checkpoint", "show", run_, "--model", model_}, "checkpoint show has no --model", 2);
  expect_refused({"checkpoint", "show", directory_ / "nowhere"}, "nowhere: contains no checkpoint");
}

}  // namespace
}  // namespace mylos::tests
