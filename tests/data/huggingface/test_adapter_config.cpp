#include "data/huggingface/adapter_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/huggingface/pretrained.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using tests::error_of_file;
using tests::TemporaryDirectory;
using tests::write_file;

/// An adapter_config.json that is read.
struct Read {
  explicit Read(const std::string& text) {
    const auto file = directory / adapter_config_file;
    write_file(file, text);
    message = error_of_file(file, [&] {
      config = read_adapter_config(FileReader(), directory.path(), [&](const std::string& line) {
        notices.push_back("F" + line.substr(file.string().size()));
      });
    });
  }
  TemporaryDirectory directory;
  AdapterConfig config;
  std::vector<std::string> notices;
  std::string message;
};

/// Returns a whole adapter_config.json with `more` at its end, such as R"("bias": "all")".
std::string with(const std::string& more) {
  return R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"], )" + more + "}";
}

TEST(AdapterConfig, IsReadAndWrittenAsPeftDoes) {
  OrderedJson json(tests::golden_json("adapter_configs.json")["default"]);
  const Read read(with(
      R"("base_model_name_or_path": "meta/base", "task_type": "CAUSAL_LM", "lora_alpha": 16.5, "lora_dropout": 0.05,
      "use_rslora": true, "exclude_modules": ["k_proj"], "modules_to_save": ["lm_head"], "layers_to_transform": 3,
      "layers_pattern": "layers", "rank_pattern": {"q": 3, "a": 2}, "alpha_pattern": {"q": 2, "a": 0.5})"));
  const AdapterConfig& config = read.config;
  EXPECT_EQ(read.message, "(nothing was thrown)");
  EXPECT_THAT(read.notices, ElementsAre());
  EXPECT_EQ(config.base, "meta/base");
  EXPECT_EQ(config.task_type, "CAUSAL_LM");
  EXPECT_EQ(config.rank, 4u);
  EXPECT_EQ(config.alpha, 16.5);
  EXPECT_EQ(config.dropout, 0.05);
  EXPECT_TRUE(config.rslora);
  EXPECT_THAT(config.targets, ElementsAre("q_proj"));
  EXPECT_THAT(config.excluded, ElementsAre("k_proj"));
  EXPECT_THAT(config.trained, ElementsAre("lm_head"));
  EXPECT_THAT(config.layers, ElementsAre(3));
  EXPECT_THAT(config.layer_lists, ElementsAre("layers"));
  EXPECT_THAT(config.ranks, ElementsAre(Pair("q", 3), Pair("a", 2))) << "in the order of the file";
  EXPECT_THAT(config.alphas, ElementsAre(Pair("q", 2.0), Pair("a", 0.5)));
  json.update(OrderedJson{{"base_model_name_or_path", "meta/base"},
                          {"task_type", "CAUSAL_LM"},
                          {"r", 4},
                          {"lora_alpha", 16.5},
                          {"lora_dropout", 0.05},
                          {"use_rslora", true},
                          {"target_modules", {"q_proj"}},
                          {"exclude_modules", {"k_proj"}},
                          {"modules_to_save", {"lm_head"}},
                          {"layers_to_transform", {3}},
                          {"layers_pattern", {"layers"}},
                          {"rank_pattern", {{"q", 3}, {"a", 2}}},
                          {"alpha_pattern", {{"q", 2}, {"a", 0.5}}}});
  EXPECT_EQ(model_json_text(adapter_config_json(config)), model_json_text(json));
}

TEST(AdapterConfig, ADirectoryOfAnAdapterHasIt) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(is_adapter_directory(directory.path()));
  write_file(directory / "adapter_config.json", "");
  EXPECT_TRUE(is_adapter_directory(directory.path()));
}

TEST(AdapterConfig, DefaultsAreThoseOfPeft) {
  AdapterConfig config;
  config.pattern = "all-linear";
  OrderedJson json(tests::golden_json("adapter_configs.json")["default"]);
  json["target_modules"] = "all-linear";
  EXPECT_EQ(model_json_text(adapter_config_json(config)), model_json_text(json));
  const Read read(R"({"peft_type": "LORA", "r": 8, "target_modules": "all-linear", "exclude_modules": ".*k_proj"})");
  EXPECT_EQ(read.config.pattern, "all-linear");
  EXPECT_EQ(read.config.excluded_pattern, ".*k_proj");
  EXPECT_EQ(read.config.alpha, 8.0);
}

TEST(AdapterConfig, RecordedOnesAreWrittenAsTheyWere) {
  const auto recorded = tests::shared_reference() / "lora";
  if (!std::filesystem::exists(recorded)) GTEST_SKIP() << recorded << " is not there (MYLOS_REFERENCE)";
  for (const auto& entry : std::filesystem::directory_iterator(recorded)) {
    const auto directory = entry.path() / "adapter";
    const AdapterConfig config =
        read_adapter_config(FileReader(), directory, [](const std::string& line) { ADD_FAILURE() << line; });
    EXPECT_EQ(model_json_text(adapter_config_json(config)),
              tests::read_file(directory / adapter_config_file) + "\n");  // PEFT ends the file without a new line
  }
}

TEST(AdapterConfig, OtherAdaptersAreRefusedByName) {
  const auto message = [](const std::string& more) { return Read(with(more)).message; };
  EXPECT_EQ(message(R"("use_dora": true)"), "F: use_dora = true is not supported; it must be false");
  EXPECT_EQ(message(R"("bias": "lora_only")"), R"(F: bias = "lora_only" is not supported; it must be "none")");
  EXPECT_EQ(message(R"("init_lora_weights": "pissa_niter_16")"),
            R"(F: init_lora_weights = "pissa_niter_16" is not supported; it must be true, false, gaussian, eva, )"
            "orthogonal");
  EXPECT_EQ(message(R"("layer_replication": [[0, 4], [2, 5]])"),
            "F: layer_replication = [[0,4],[2,5]] is not supported; it must be null");
  for (const std::string key :
       {"alora_invocation_tokens", "arrow_config", "kasa_config", "monteclora_config", "target_parameters",
        "trainable_token_indices", "use_bdlora", "velora_config", "ensure_weight_tying", "lora_bias", "use_qalora"}) {
    EXPECT_THAT(message("\"" + key + "\": [1]"), testing::StartsWith("F: " + key + " = [1] is not supported")) << key;
    EXPECT_EQ(message("\"" + key + "\": null"), "(nothing was thrown)") << key;
  }
  for (const std::string start : {"true", "false", "\"gaussian\"", "\"eva\"", "\"orthogonal\""}) {
    EXPECT_EQ(message("\"init_lora_weights\": " + start), "(nothing was thrown)") << start;
  }
  for (const std::string start : {"pissa", "olora", "corda", "loftq", "lora_ga", "mica"}) {
    EXPECT_THAT(message("\"init_lora_weights\": \"" + start + "\""), testing::StartsWith("F: init_lora_weights = "));
  }
  EXPECT_EQ(Read(R"({"peft_type": "IA3", "r": 4, "target_modules": ["q_proj"]})").message,
            R"(F: peft_type = "IA3" is not supported; it must be "LORA")");
}

TEST(AdapterConfig, UnknownKeysAreIgnoredInOneLine) {
  const Read read(with(R"("new_a": 3, "new_b": {"x": 1}, "new_c": null, "new_d": false, "new_e": [], "new_f": {},
                         "new_g": "", "revision": "main", "megatron_config": {"a": 1}, "fan_in_fan_out": true)"));
  EXPECT_EQ(read.message, "(nothing was thrown)");
  EXPECT_THAT(read.notices, ElementsAre("F: keys that are not known are ignored: new_a, new_b"));
}

TEST(AdapterConfig, WrongValuesAreNamed) {
  const auto message = [](const std::string& text) { return Read(text).message; };
  EXPECT_EQ(message("[]"), "F: not a JSON object");
  EXPECT_EQ(message(R"({"r": 4, "target_modules": ["q_proj"]})"), "F: no \"peft_type\"; an adapter needs it");
  EXPECT_EQ(message(R"({"peft_type": "LORA", "target_modules": ["q_proj"]})"), "F: no \"r\"; an adapter needs it");
  for (const std::string targets : {"", R"(, "target_modules": null)", R"(, "target_modules": [])"}) {
    EXPECT_EQ(message(R"({"peft_type": "LORA", "r": 4)" + targets + "}"),
              "F: no \"target_modules\"; an adapter needs it");
  }
  EXPECT_EQ(message(with(R"("lora_alpha": 4, "lora_alpha": 8)")), "F: the key \"lora_alpha\" comes twice");
  EXPECT_EQ(message(with(R"("lora_alpha": 0)")), "F: lora_alpha = 0 is not a number above 0 and below 1e+30");
  EXPECT_EQ(message(with(R"("lora_dropout": 1)")), "F: lora_dropout = 1 is not a number of at least 0 and below 1");
  EXPECT_EQ(message(with(R"("use_rslora": 1)")), "F: use_rslora = 1 is neither true nor false");
  EXPECT_EQ(message(with(R"("rank_pattern": {"q": 0})")),
            "F: rank_pattern: q = 0 is not a whole number from 1 to 1048576");
  EXPECT_EQ(message(with(R"("rank_pattern": 3)")), "F: rank_pattern: not a JSON object");
  EXPECT_EQ(message(with(R"("alpha_pattern": {"q": "a"})")),
            "F: alpha_pattern: q = \"a\" is not a number above 0 and below 1e+30");
  EXPECT_EQ(message(with(R"("modules_to_save": "lm_head")")), "F: modules_to_save: expected list, found string");
  EXPECT_EQ(message(with(R"("exclude_modules": [3])")), "F: exclude_modules: expected string, found number");
  EXPECT_EQ(message(with(R"("layers_to_transform": [-1])")).substr(0, 23), "F: layers_to_transform:");
  EXPECT_EQ(message(with(R"("task_type": 3)")), "F: task_type: expected string, found number");
  EXPECT_EQ(message(R"({"peft_type": "LORA", "r": 0, "target_modules": "q"})"),
            "F: r = 0 is not a whole number from 1 to 1048576");
  EXPECT_EQ(message(R"({"peft_type": "LORA", "r": 4, "target_modules": "q", "layers_to_transform": [1]})"),
            "F: layers_to_transform needs a list of target_modules");
  EXPECT_THAT(message("{"), testing::StartsWith("F: not JSON at line 1"));
}

}  // namespace
}  // namespace mylos::data
