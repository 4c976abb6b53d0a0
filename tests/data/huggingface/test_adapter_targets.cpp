#include "data/huggingface/adapter_targets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/files/json.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

const std::vector<std::string> linear{"model.layers.0.q_proj", "model.layers.0.k_proj", "model.layers.1.q_proj",
                                      "lm_head"};

OrderedJson recorded() {
  const auto file = tests::golden_data() / "adapter_configs.json";
  return parse_ordered_json(tests::read_file(file), file.string());
}

AdapterConfig with_targets(std::vector<std::string> targets) {
  AdapterConfig config;
  config.targets = std::move(targets);
  return config;
}

std::vector<std::string> modules_of(const AdapterConfig& config) {
  std::vector<std::string> modules;
  for (const AdapterTarget& target : adapter_targets(config, linear)) modules.push_back(target.module);
  return modules;
}

TEST(AdapterTargets, AreThoseOfPeft) {
  const OrderedJson golden = recorded();
  for (const OrderedJson& one : golden["cases"]) {
    SCOPED_TRACE(one.dump());
    const OrderedJson& model = golden["models"][one["model"].get<std::string>()];
    const auto modules = model["linear"].get<std::vector<std::string>>();
    const tests::TemporaryDirectory directory;
    OrderedJson json = golden["default"];
    json.update(one["config"]);
    tests::write_file(directory / adapter_config_file, json.dump());
    const AdapterConfig config = read_adapter_config(FileReader(), directory.path(), {});
    for (const char* key : {"layers_to_transform", "layers_pattern"}) {  // PEFT reads one as a list of one
      if (!json[key].is_array() && !json[key].is_null()) json[key] = {json[key]};
    }
    EXPECT_EQ(adapter_config_json(config).dump(), json.dump());
    OrderedJson targets = OrderedJson::array();
    const std::string error = error_of([&] {
      for (const auto& [module, rank, scale] : adapter_targets(config, modules)) {
        targets.push_back({std::ranges::find(modules, module) - modules.begin(), rank, scale});
      }
    });
    EXPECT_EQ(targets, one["targets"]);
    EXPECT_THAT(error, HasSubstr(one["targets"].empty() ? "matches no module" : "(nothing was thrown)"));
    if (one["targets"].empty()) continue;
    EXPECT_EQ(trained_modules(config, model["modules"].get<std::vector<std::string>>()),
              one["trained"].get<std::vector<std::string>>());
  }
}

TEST(AdapterTargets, NamesThatMatchNothingAreErrors) {
  EXPECT_EQ(
      error_of([] {
        modules_of(with_targets({"q_proj", "query\n"}));
      }),
      R"(adapter_config.json: target_modules "query\x0a" matches no module; the linear modules of this model are )"
      "k_proj, lm_head, q_proj");
  AdapterConfig config = with_targets({"q_proj"});
  config.ranks = {{"q_proj", 4}, {"k_proj", 2}};
  EXPECT_EQ(error_of([&] { modules_of(config); }),
            R"(adapter_config.json: rank_pattern "k_proj" matches no module with an adapter)");
  config.ranks.clear();
  config.alphas = {{"layers.2.q_proj", 4.0}};
  EXPECT_EQ(error_of([&] { modules_of(config); }),
            R"(adapter_config.json: alpha_pattern "layers.2.q_proj" matches no module with an adapter)");
  config.alphas.clear();
  config.excluded = {"q_proj"};
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr(R"(target_modules "q_proj" matches no module)"));
  config.excluded.clear();
  config.layers = {7};
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr(R"(target_modules "q_proj" matches no module)"));
}

TEST(AdapterTargets, ExpressionsThatCannotBeReadAreErrors) {
  AdapterConfig config;
  config.pattern = "q_proj(";
  EXPECT_THAT(error_of([&] { modules_of(config); }),
              HasSubstr("adapter_config.json: target_modules \"q_proj(\": the regular expression does not compile: "));
  config.pattern = "(?P<name>.*)";
  EXPECT_EQ(error_of([&] { modules_of(config); }),
            "adapter_config.json: target_modules \"(?P<name>.*)\": the regular expression uses (?P<, which is not "
            "supported");
  config.pattern = ".*(q|k)_proj";
  config.ranks = {{"[", 4}};
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr("adapter_config.json: rank_pattern \"[\": the regular"));
}

TEST(AdapterTargets, TheOutputLayerIsOnlyMeantByName) {
  AdapterConfig config;
  config.pattern = "all-linear";
  EXPECT_THAT(modules_of(config), ElementsAre(linear[0], linear[1], linear[2]));
  config.pattern = ".*";
  EXPECT_EQ(modules_of(config), linear);
  EXPECT_THAT(modules_of(with_targets({"lm_head"})), ElementsAre("lm_head"));
  config.pattern = "all-linear";
  EXPECT_EQ(adapter_targets(config, linear, "").size(), 4u);
}

TEST(AdapterTargets, HeadsThatPeftAddsMayBeAbsent) {
  const std::vector<std::string> modules{"bert", "bert.pooler", "pre_classifier", "classifier"};
  AdapterConfig config = with_targets({"query"});
  config.trained = {"classifier", "score"};
  EXPECT_EQ(error_of([&] { trained_modules(config, modules); }),
            R"(adapter_config.json: modules_to_save "score" is no module of this model)");
  config.task_type = "SEQ_CLS";
  EXPECT_THAT(trained_modules(config, modules), ElementsAre("classifier", "pre_classifier"));
  config.trained = {"qa_outputs"};
  EXPECT_THAT(error_of([&] { trained_modules(config, modules); }), HasSubstr("modules_to_save \"qa_outputs\""));
  config.task_type = "QUESTION_ANS";
  EXPECT_TRUE(trained_modules(config, modules).empty());
}

/// PEFT adds the head to modules_to_save when it loads the adapter.
TEST(AdapterTargets, TheHeadOfTheTaskHasNoAdapter) {
  AdapterConfig config;
  config.pattern = ".*";
  const std::vector<std::string> modules{"bert.query", "classifier", "qa_outputs"};
  const auto count = [&](const std::string& task) {
    config.task_type = task;
    return adapter_targets(config, modules).size();
  };
  EXPECT_EQ(count(""), 3u);
  EXPECT_EQ(count("SEQ_CLS"), 2u);
  EXPECT_EQ(count("TOKEN_CLS"), 2u);
  EXPECT_EQ(count("QUESTION_ANS"), 2u);
}

/// PEFT refuses such an adapter.
TEST(AdapterTargets, AModuleTrainedWholeHasNoAdapter) {
  AdapterConfig config;
  config.pattern = "all-linear";
  config.trained = {"_proj"};
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr("target_modules \"all-linear\" matches no module"));
}

}  // namespace
}  // namespace mylos::data
