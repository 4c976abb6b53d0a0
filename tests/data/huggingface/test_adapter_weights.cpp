#include "data/huggingface/adapter_weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/files/json.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;
using tests::TemporaryDirectory;

const std::vector<TensorSpec> small_base{
    {"a.weight", {3, 4}}, {"a.bias", {3}}, {"b.weight", {2, 3}}, {"head.weight", {2, 2}}, {"header.weight", {1}}};
const std::vector<std::string> small_linear{"a", "b", "head"};

/// An adapter of rank 2 on "a", with the head trained whole.
AdapterConfig small_config() {
  AdapterConfig config;
  config.targets = {"a"};
  config.trained = {"head"};
  config.rank = 2;
  config.alpha = 1.0;
  return config;
}

std::vector<TensorSpec> small_tensors(const AdapterConfig& config) {
  return adapter_tensors(config, adapter_targets(config, small_linear), trained_modules(config, small_linear),
                         small_base);
}

/// Returns values that count up from `first`.
std::vector<float> counted(std::size_t count, float first) {
  std::vector<float> values(count);
  for (float& value : values) value = first++;
  return values;
}

TensorReader reader_of(std::vector<float> values) {
  return [values = std::move(values)](std::size_t first, std::span<float> piece) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), piece.size(), piece.begin());
  };
}

std::vector<float> all_of(const TensorReader& read, std::size_t count, std::size_t piece) {
  std::vector<float> values(count);
  for (std::size_t first = 0; first < count; first += piece) {
    read(first, std::span(values).subspan(first, std::min(piece, count - first)));
  }
  return values;
}

/// Writes an adapter whose tensors count up from 1, and is read with the tensors of small_config().
struct Written {
  explicit Written(std::vector<TensorShape> shapes = written_adapter_tensors(small_tensors(small_config()))) {
    PretrainedWriter writer(directory / "adapter", adapter_config_json(small_config()), {}, shapes, adapter_format());
    for (const TensorShape& shape : shapes) writer.write(counted(element_count(shape.shape, shape.name), 1.0F));
    writer.commit();
  }
  std::string message() const {
    return error_of([&] { AdapterWeights(FileReader(), path, small_tensors(small_config())); });
  }
  TemporaryDirectory directory;
  std::filesystem::path path = directory / "adapter";
};

TEST(AdapterWeights, TensorsAreSortedAndNamedAsPeftNamesThem) {
  AdapterConfig config = small_config();
  config.targets = {"a", "b"};
  const std::vector<std::string> unsorted{"head", "b", "a"};
  const std::vector<TensorSpec> tensors =
      adapter_tensors(config, adapter_targets(config, unsorted), trained_modules(config, unsorted), small_base);
  std::vector<std::string> names;
  for (const TensorShape& shape : written_adapter_tensors(tensors)) names.push_back(shape.name);
  EXPECT_THAT(names, ElementsAre("base_model.model.a.lora_A.weight", "base_model.model.a.lora_B.weight",
                                 "base_model.model.b.lora_A.weight", "base_model.model.b.lora_B.weight",
                                 "base_model.model.head.weight"));
  EXPECT_EQ(adapter_tensor_name("a.lora_A.weight"), names[0]);
  EXPECT_THAT(tensors[0].shape, ElementsAre(2, 4));
  EXPECT_THAT(tensors[1].shape, ElementsAre(3, 2));
  EXPECT_THAT(tensors[4].shape, ElementsAre(2, 2));
}

TEST(AdapterWeights, AreWrittenAsOneDirectoryAndRead) {
  const Written written;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(written.path)) files.push_back(entry.path().filename());
  EXPECT_THAT(files, ::testing::UnorderedElementsAre(adapter_config_file, adapter_weights_file));
  EXPECT_EQ(read_adapter_config(FileReader(), written.path, {}).rank, 2u);
  const AdapterWeights weights(FileReader(), written.path, small_tensors(small_config()));
  EXPECT_TRUE(weights.contains("head.weight"));
  EXPECT_FALSE(weights.contains("b.weight"));
  EXPECT_EQ(all_of(weights.reader("a.lora_B.weight"), 6, 4), counted(6, 1.0F));
}

TEST(AdapterWeights, OtherFilesAreNotOfAnAdapter) {
  const TemporaryDirectory directory;
  const std::vector<ModelFile> files{{adapter_config_file, "{}"}};
  EXPECT_THAT(error_of([&] { PretrainedWriter(directory / "a", {}, files, {}, adapter_format()); }),
              HasSubstr("adapter_config.json: a model directory holds only one file of this name"));
}

TEST(AdapterWeights, OtherTensorsThanWantedAreErrors) {
  EXPECT_EQ(Written().message(), "(nothing was thrown)");
  EXPECT_THAT(
      Written({{"base_model.model.a.lora_A.weight", {2, 4}}, {"base_model.model.head.weight", {2, 2}}}).message(),
      EndsWith("/adapter lack 1 of 3 tensors: a.lora_B.weight"));
  std::vector<TensorShape> shapes = written_adapter_tensors(small_tensors(small_config()));
  shapes.push_back({"base_model.model.a.lora_magnitude_vector.weight", {3}});
  EXPECT_THAT(Written(shapes).message(),
              EndsWith("have 1 tensor that the adapter of this adapter_config.json does not: "
                       "base_model.model.a.lora_magnitude_vector.weight"));
  shapes.back() = {"a.lora_A.weight", {2, 4}};
  EXPECT_THAT(Written(shapes).message(),
              HasSubstr("tensor \"a.lora_A.weight\" is also stored as \"base_model.model.a.lora_A.weight\""));
  shapes.pop_back();
  shapes[1].shape = {2, 3};
  EXPECT_THAT(Written(shapes).message(),
              EndsWith("adapter_model.safetensors: tensor \"base_model.model.a.lora_B.weight\" has shape (2, 3), the "
                       "model of adapter_config.json needs (3, 2)"));
}

TEST(AdapterWeights, ThatAreMissingOrCutShortAreErrors) {
  const Written written;
  const auto file = written.path / adapter_weights_file;
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THAT(written.message(), HasSubstr("it was cut short"));
  std::filesystem::remove(file);
  tests::write_file(written.path / "model.safetensors.index.json", "{}");
  tests::write_file(written.path / "optimizer.ckpt", "");
  EXPECT_THAT(written.message(), EndsWith("/adapter has no adapter_model.safetensors"));
}

TEST(AdapterWeights, ARankAboveTheWidthIsAnError) {
  AdapterConfig config = small_config();
  config.ranks = {{"a", 3}};
  EXPECT_NO_THROW(small_tensors(config));
  config.ranks = {{"a", 4}};
  EXPECT_EQ(error_of([&] { small_tensors(config); }),
            "adapter_config.json: r 4 of a is above 3, the smaller side of its weight (3, 4)");
}

TEST(AdapterWeights, AreMergedHoweverTheyAreCut) {
  const Written written;
  const MergedAdapter adapter(FileReader(), written.path, small_config(), small_linear, small_base);
  // B A is ((11, 14, 17, 20), (23, 30, 37, 44), (35, 46, 57, 68)), scaled by a half.
  const std::vector<float> merged{5.5F, 8, 10.5F, 13, 15.5F, 20, 24.5F, 29, 25.5F, 32, 38.5F, 45};
  for (const std::size_t piece : {1, 3, 4, 5, 12}) {
    EXPECT_EQ(all_of(adapter.merged(small_base[0], reader_of(counted(12, 0.0F))), 12, piece), merged) << piece;
    EXPECT_EQ(all_of(adapter.merged(small_base[2], reader_of(counted(6, 0.0F))), 6, piece), counted(6, 0.0F));
    EXPECT_EQ(all_of(adapter.merged(small_base[3], reader_of(counted(4, 0.0F))), 4, piece), counted(4, 1.0F));
  }
}

/// A recorded adapter and its base.
struct Recorded {
  explicit Recorded(const std::filesystem::path& directory)
      : directory(directory),
        base_file(FileReader(), directory / "base" / weights_file),
        config(read_adapter_config(FileReader(), directory / "adapter", {})) {
    for (const TensorInfo& tensor : base_file.tensors()) {
      base.push_back({tensor.name, tensor.shape});
      const bool is_linear = tensor.shape.size() == 2 && tensor.name.find("embed") == std::string::npos;
      if (is_linear) linear.push_back(tensor.name.substr(0, tensor.name.rfind('.')));
    }
  }
  std::filesystem::path directory;
  SafetensorsFile base_file;
  AdapterConfig config;
  std::vector<TensorSpec> base;
  std::vector<std::string> linear;
};

TEST(AdapterWeights, RecordedOnesMergeAsInPeft) {
  const auto directories = tests::recorded_models("lora");
  if (directories.empty()) GTEST_SKIP() << "no recorded adapters (MYLOS_REFERENCE)";
  for (const auto& directory : directories) {
    const Recorded recorded(directory);
    const MergedAdapter adapter(FileReader(), directory / "adapter", recorded.config, recorded.linear, recorded.base);
    const SafetensorsFile expected(FileReader(), directory / "merged.safetensors");
    std::size_t changed = 0;
    for (const TensorSpec& tensor : recorded.base) {
      const std::vector<float> values = recorded.base_file.read_float(tensor.name);
      const std::vector<float> merged = all_of(adapter.merged(tensor, reader_of(values)), values.size(), 100);
      const std::vector<float> theirs = expected.read_float(tensor.name);
      changed += theirs != values ? 1 : 0;
      for (std::size_t i = 0; i < merged.size(); ++i) {
        ASSERT_NEAR(merged[i], theirs[i], 1e-6) << directory << tensor.name << i;
      }
    }
    EXPECT_GE(changed, 4u) << directory;
  }
}

TEST(AdapterWeights, RecordedOnesAreWrittenAsTheyWere) {
  const auto directories = tests::recorded_models("lora");
  if (directories.empty()) GTEST_SKIP() << "no recorded adapters (MYLOS_REFERENCE)";
  for (const auto& directory : directories) {
    const Recorded recorded(directory);
    const std::vector<TensorSpec> tensors = adapter_tensors(
        recorded.config, adapter_targets(recorded.config, recorded.linear),
        trained_modules(recorded.config, std::vector<std::string>{"classifier", "lm_head"}), recorded.base);
    const AdapterWeights weights(FileReader(), directory / "adapter", tensors);
    const TemporaryDirectory written;
    PretrainedWriter writer(written / "adapter", adapter_config_json(recorded.config), {},
                            written_adapter_tensors(tensors), adapter_format());
    for (const TensorSpec& tensor : tensors) {
      const std::size_t count = element_count(tensor.shape, tensor.name);
      writer.write(all_of(weights.reader(tensor.name), count, count));
    }
    writer.commit();
    EXPECT_EQ(tests::read_file(written / "adapter/adapter_model.safetensors"),
              tests::read_file(directory / "adapter" / adapter_weights_file));
  }
}

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
  EXPECT_EQ(error_of([&] { modules_of(config); }),
            "adapter_config.json: target_modules names only modules that exclude_modules, layers_to_transform or "
            "modules_to_save leave out");
  config.excluded.clear();
  config.layers = {7};
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr("target_modules names only modules that"));
  config.layers.clear();
  config.file.clear();
  config.trained = {"q_proj"};
  EXPECT_EQ(error_of([&] { modules_of(config); }), "`lora-targets` names only modules that `lora-train` trains whole");
}

TEST(AdapterTargets, ExpressionsThatCannotBeReadAreErrors) {
  AdapterConfig config;
  config.pattern = "q_proj(";
  EXPECT_THAT(error_of([&] { modules_of(config); }),
              HasSubstr("adapter_config.json: target_modules \"q_proj(\": the regular expression does not compile: "));
  config.pattern = "(.*)*(.*)*(.*)*[x-z]{2}";
  EXPECT_THAT(
      error_of([&] { modules_of(config); }),
      HasSubstr("adapter_config.json: target_modules \"(.*)*(.*)*(.*)*[x-z]{2}\": the regular expression fails on "));
  config.pattern = ".*(q|k)_proj";
  config.ranks = {{"[", 4}};
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr("adapter_config.json: rank_pattern \"[\": the regular"));
}

TEST(AdapterTargets, ExpressionsAreReadAsByPython) {
  AdapterConfig config;
  for (const char* pattern :
       {R"((?:\bmodel\.layers\.[\d]{1,}\.(?:q_proj)))", R"((?P<all>.*)q_proj\Z)", "(?i).*Q_PROJ$"}) {
    config.pattern = pattern;
    EXPECT_THAT(modules_of(config), ElementsAre(linear[0], linear[2])) << pattern;
  }
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
  EXPECT_THAT(error_of([&] { modules_of(config); }), HasSubstr("target_modules names only modules that"));
}

}  // namespace
}  // namespace mylos::data
