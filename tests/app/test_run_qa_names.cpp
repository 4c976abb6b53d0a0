#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/options/peer_options.hpp"
#include "app/options/train_options.hpp"
#include "core/base/usage_error.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/paths.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

/// mylos train with the options of Hugging Face's run_qa: pasted lines of its README.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

/// Splits a command line without quotes into words, as a shell does.
Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) {
    if (word != "\\") words.push_back(word);
  }
  return words;
}

app::Arguments parse_train(const Words& more) {
  Words words = joined({"--model", "m", "--train", "t", "--output", "o"}, more);
  return app::parse_arguments(FileReader(), *app::find_command("train"), words);
}

/// The caches of a user who has fetched both a model with BERT's positions and a data set called SQuAD.
class RunQa : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    write_tiny_model(directory_ / "cache/mylos/models/bert-base-uncased", {.has_head = false, .positions = 512});
    for (const char* version : {"1.1", "2.0"}) {
      for (const char* part : {"train", "dev"}) {
        write_file(directory_ / "cache/mylos/squad" / (std::string(part) + "-v" + version + ".json"),
                   tiny_questions(std::string(version) == "2.0" ? "v2.0" : "1.1"));
      }
    }
  }
  ProgramRun paste(std::string line, const Words& more = {}) const {
    const std::string theirs = "/tmp/debug_squad/";
    line.replace(line.find(theirs), theirs.size(), (run_ / "").string());
    return run_mylos(joined(words_of(line), more));
  }
  json run_json() const { return json::parse(read_file(run_ / "run.json")); }

  EnvironmentVariable hub_{"HF_HOME", (directory_ / "hf").string()}, hub_cache_{"HF_HUB_CACHE", ""},
      datasets_{"HF_DATASETS_CACHE", ""};
};

// github.com/huggingface/transformers/blob/main/examples/pytorch/question-answering/README.md, with mylos train instead
// of python run_qa.py.
constexpr const char* readme_line = R"(train \
  --model_name_or_path google-bert/bert-base-uncased \
  --dataset_name squad \
  --do_train \
  --do_eval \
  --per_device_train_batch_size 12 \
  --learning_rate 3e-5 \
  --num_train_epochs 2 \
  --max_seq_length 384 \
  --doc_stride 128 \
  --output_dir /tmp/debug_squad/)";

TEST_F(RunQa, TheReadmesLineRuns) {
  const ProgramRun run = paste(readme_line);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json config = run_json();
  EXPECT_EQ(config["train"], (directory_ / "cache/mylos/squad/train-v1.1.json").string());
  EXPECT_EQ(config["dev"], (directory_ / "cache/mylos/squad/dev-v1.1.json").string());
  EXPECT_EQ(config["batch"], 12);
  EXPECT_EQ(config["epochs"], 2.0);
  EXPECT_EQ(config["max-length"], 384);
  EXPECT_THAT(json::parse(run.output).size(), testing::Gt(2u)) << "scores";
  EXPECT_TRUE(fs::exists(run_ / "best" / "model.safetensors"));
}

TEST_F(RunQa, SoDoesTheOneOfSquad2) {
  std::string line = readme_line;
  line.replace(line.find("dataset_name squad"), 18, "dataset_name squad_v2 --version_2_with_negative");
  const ProgramRun run = paste(
      line, words_of("--per_device_eval_batch_size 8 --overwrite_output_dir True --save_steps 500 --warmup_ratio 0.1 "
                     "--seed 7 --gradient_checkpointing --logging_steps 10 --report_to none --bf16 False "
                     "--preprocessing_num_workers=4 --overwrite_cache --max_steps 2"));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json config = run_json();
  EXPECT_EQ(config["squad"], "2.0");
  EXPECT_EQ(config["train"], (directory_ / "cache/mylos/squad/train-v2.0.json").string());
  EXPECT_EQ(config["checkpoint-every"], 500);
  EXPECT_EQ(config["recompute"], "layer");
  EXPECT_EQ(config["precision"], "float");
  for (const char* name : {"per_device_eval_batch_size 8", "logging_steps 10", "report_to none",
                           "preprocessing_num_workers 4", "overwrite_cache"}) {
    EXPECT_THAT(run.errors, HasSubstr("--" + std::string(name) + " has no effect here: "));
  }
}

TEST_F(RunQa, DataThatAreNotThereSayHowToGetThem) {
  fs::remove_all(directory_ / "cache/mylos/squad");
  const ProgramRun run = paste(readme_line);
  EXPECT_EQ(run.exit_code, 1);
  ASSERT_EQ(run.error_lines().size(), 1u) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("get them with: mylos fetch squad"));
}

TEST_F(RunQa, WhatIsEvaluatedIsSaid) {
  const auto dev_of = [](const Words& words) {
    Words all = joined({"--model", "m", "--output", "o", "--dataset", "squad"}, words);
    return app::parse_arguments(FileReader(), *app::find_command("train"), all).run.task.dev;
  };
  EXPECT_NE(dev_of({}), "");
  EXPECT_NE(dev_of({"--do_train", "--do_eval"}), "");
  EXPECT_EQ(dev_of({"--do_train"}), "") << "as run_qa";
  EXPECT_EQ(dev_of({"--do_train", "--dev", "mine"}), "mine");
  EXPECT_THAT(error_of([] { parse_train({"--do_eval"}); }), HasSubstr("mylos train needs --do_train"));
  EXPECT_THAT(error_of([] { parse_train({"--do_train", "--do_eval"}); }), HasSubstr("--do-eval needs evaluation data"));
  EXPECT_THAT(error_of([] { parse_train({"--dataset", "squad"}); }), HasSubstr("--dataset and --train exclude"));
  EXPECT_THAT(error_of([] { parse_train({"--dataset_name", "glue"}); }), HasSubstr("expected squad or squad_v2"));
}

TEST(RunQaNames, SwitchesTakeTrueAndFalse) {
  EXPECT_EQ(parse_train({"--bf16"}).run.engine.precision, Precision::bfloat16);
  for (const char* word : {"1", "yes", "T", "TRUE", "y"}) {
    EXPECT_EQ(parse_train({"--fp16", word}).run.engine.precision, Precision::float16) << word;
    EXPECT_EQ(parse_train({"--gradient_checkpointing", word}).run.engine.recompute, nn::Recompute::layer) << word;
    EXPECT_THAT(error_of([&] { parse_train({"--push_to_hub", word}); }), HasSubstr("--push_to_hub is not supported"));
  }
  for (const char* word : {"0", "No", "f", "FALSE", "n"}) {
    EXPECT_EQ(parse_train({"--fp16", word, std::string("--bf16=") + word}).run.engine.precision, Precision::float32);
    EXPECT_EQ(parse_train({std::string("--gradient_checkpointing=") + word}).run.engine.recompute, nn::Recompute::none);
    EXPECT_EQ(parse_train({"--push_to_hub", word}).remarks.size(), 1u) << word;
    EXPECT_THAT(error_of([&] {
                  parse_train({"--do_train", word});
                }),
                HasSubstr("mylos train needs --do_train"))
        << word;
  }
  EXPECT_THAT(error_of([] { parse_train({"--fp16", "--bf16"}); }), HasSubstr("--bf16 and --fp16 exclude each other"));
  EXPECT_THAT(error_of([] { parse_train({"--fp16", "--precision", "float"}); }), HasSubstr("exclude each other"));
}

TEST(RunQaNames, SwitchesAreDeniedAsThere) {
  const app::Arguments arguments = parse_train({"--tf32", "--no_tf32", "--no_dataloader_pin_memory", "--batch", "3"});
  EXPECT_FALSE(arguments.run.engine.gemm.tf32);
  EXPECT_EQ(arguments.run.task.batch, 3u);
  ASSERT_EQ(arguments.remarks.size(), 1u);
  EXPECT_THAT(arguments.remarks.front(), HasSubstr("--no_dataloader_pin_memory has no effect here: "));
  EXPECT_THAT(error_of([] { parse_train({"--no_tf32=1"}); }), HasSubstr("--no_tf32 takes no value"));
  EXPECT_EQ(parse_train({"--no_cuda", "false"}).remarks.size(), 1u);
  EXPECT_THAT(error_of([] { parse_train({"--no_batch"}); }), HasSubstr("train does not have --no_batch"));
}

TEST(RunQaNames, TokensAreNotTold) {
  for (const Words& words : {Words{"--token", "hf_x"}, Words{"--token=hf_x"}, Words{"--use_auth_token", "hf_x"},
                             Words{"--use_auth_token=hf_x"}}) {
    const app::Arguments arguments = parse_train(words);
    ASSERT_EQ(arguments.remarks.size(), 1u);
    EXPECT_THAT(arguments.remarks.front(), Not(HasSubstr("hf_x")));
  }
  EXPECT_EQ(parse_train({"--use_auth_token", "--batch", "3"}).run.task.batch, 3u);
}

/// The recorded command lines hold the answer to each of them.
TEST(RunQaNames, EachIsTakenWithALineOrRefused) {
  for (const PeerOption& option : app::peer_options()) {
    SCOPED_TRACE(option.name);
    ASSERT_EQ(app::find_option(option.name) == nullptr, option.option.empty()) << "it has an option of ours";
    if (!option.option.empty()) continue;
    EXPECT_EQ(!option.why.empty() && option.values.empty(), option.instead.empty());
  }
  const app::Arguments arguments = parse_train({"--report_to", "none", "--batch", "3"});
  ASSERT_EQ(arguments.remarks.size(), 1u);
  EXPECT_THAT(arguments.remarks.front(), HasSubstr("--report_to none has no effect here: "));
  EXPECT_EQ(arguments.run.task.batch, 3u) << "what follows is read";
  EXPECT_EQ(error_of([] { parse_train({"--report_to"}); }), "--report_to needs a value");
  EXPECT_THAT(error_of([] { parse_train({"--deepspeed", "ds.json"}); }), HasSubstr("is not supported; use --mode"));
  EXPECT_THAT(error_of([] { parse_train({"--max_predict_samples", "5"}); }), HasSubstr("use mylos eval"));
  EXPECT_EQ(parse_train({"--max_steps", "-1", "--num_train_epochs", "3"}).run.engine.steps, 0u) << "Trainer's default";
}

TEST(RunQaNames, WhatHasAnotherNameHereIsAnsweredWithIt) {
  EXPECT_EQ(error_of([] { parse_train({"--max_epochs", "3"}); }), "--max_epochs 3 is not supported; use --epochs");
  EXPECT_EQ(error_of([] { parse_train({"--devices"}); }),
            "--devices is not supported; leave it out: the launcher (srun, mpirun) determines the ranks, one per GPU");
  EXPECT_EQ(error_of([] { parse_train({"--no_layer_wrap_policy"}); }),
            "--no_layer_wrap_policy is not supported; leave it out: the units are always layers");
  EXPECT_EQ(error_of([] { parse_train({"--zero_optimization.stage=2"}); }),
            "--zero_optimization.stage 2 is not supported; use --mode (sharded-optimizer, sharded-gradients, sharded, "
            "hybrid)");
  EXPECT_EQ(error_of([] {
              parse_train({"--batchsize", "8"});
            }),
            "train does not have --batchsize; use --batch (all ranks together) or --batch-per-rank");
  EXPECT_EQ(error_of([] {
              parse_train({"--report_too", "none"});
            }),
            "train does not have --report_too; did you mean --report-to?");
}

TEST(RunQaNames, TrueAndFalseSayWhetherToResume) {
  EXPECT_EQ(parse_train({"--resume_from_checkpoint", "True"}).train->resume, "auto");
  EXPECT_EQ(parse_train({"--resume_from_checkpoint=false"}).train->resume, "never");
  EXPECT_EQ(parse_train({"--resume", "y"}).train->resume, "y") << "a directory may be called so";
}

std::string with_underscores(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

/// A row of the page's tables: their names, in backticks in the first column, and our options in the second column.
struct PageRow {
  std::set<std::string> names, options;
  std::string here;  ///< the second column
};

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

std::vector<PageRow> page_rows() {
  std::vector<PageRow> rows;
  std::istringstream page(read_file(source_dir() / "docs/coming-from.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ")) continue;
    const std::size_t second = line.find(" | ");
    PageRow row{{}, matches(line.substr(second), "--([a-z][a-z0-9-]*)"), line.substr(second + 3)};
    for (const std::string& span : matches(line.substr(0, second), "`([^`]*)`")) {
      const std::size_t inner = span.find('(') + 1;  // the part within DataLoader(batch_size)
      row.names.merge(matches(span.substr(inner), "([a-z][a-z0-9_.]*)"));
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(RunQaNames, ThePageTellsOfEach) {
  const std::string page = read_file(source_dir() / "docs/coming-from.md");
  const std::vector<PageRow> rows = page_rows();
  for (const PeerOption& option : app::peer_options()) {
    const std::string name = with_underscores(option.name);
    if (!option.option.empty()) continue;
    if (option.why.empty()) {
      EXPECT_TRUE(std::ranges::any_of(rows, [&](const PageRow& row) { return row.names.contains(name); })) << name;
    } else {
      EXPECT_TRUE(std::regex_search(page, std::regex("\\b" + name + "\\b"))) << name;
    }
  }
}

/// Every name in the tables is either an option or rejected with the text of its row.
TEST(RunQaNames, TheTablesOfThePageAreTheProgramsAnswers) {
  std::size_t names = 0;
  for (const PageRow& row : page_rows()) {
    for (const std::string& name : row.names) {
      SCOPED_TRACE(name);
      ++names;
      std::set<std::string> answered;
      if (const app::Option* option = app::find_option(name)) {
        EXPECT_TRUE(option->belongs_to("train"));
        if (option->name != app::normalized_name(name)) answered.insert(option->name);
      } else {
        const PeerOption* peer = app::find_peer_option(app::normalized_name(name), *app::find_command("train"));
        ASSERT_NE(peer, nullptr) << "train neither takes nor answers it";
        answered = matches(std::string(peer->instead), "--([a-z][a-z0-9-]*)");
        if (peer->instead.empty()) {
          EXPECT_TRUE(row.here.starts_with("none") || row.here.starts_with("always"))
              << "it has no effect: " << row.here;
        }
      }
      for (const std::string& option : answered) {
        EXPECT_NE(app::find_option(option), nullptr) << option;
        const bool is_named = row.options.contains(option) || row.options.contains(app::normalized_name(name));
        EXPECT_TRUE(is_named) << "its row does not name --" << option;
      }
    }
  }
  EXPECT_GT(names, 80u);
}

}  // namespace
}  // namespace mylos::tests
