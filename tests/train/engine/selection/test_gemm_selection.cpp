#include "train/engine/selection/gemm_selection.hpp"

#include "core/device.hpp"
#include "families/bert/bert_model.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <sstream>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using Purpose = ParameterStore::Purpose;
using nlohmann::json;

constexpr families::BertShape small{
    .vocabulary = 50, .hidden = 24, .layers = 2, .heads = 3, .feed_forward = 96, .positions = 60, .token_types = 2};

std::vector<GemmProduct> products(std::size_t rows) {
  const auto model = families::make_bert_question_answering(small, Precision::float32);
  return model->products({.samples = 2, .rows = rows, .longest = rows}, Purpose::training);
}

/// Returns the products of its layers, for which providers are chosen; its head has only two columns.
std::vector<GemmProduct> chosen_products(std::size_t rows) {
  std::vector<GemmProduct> all = products(rows);
  std::erase_if(all, [](const GemmProduct& product) { return product.name.starts_with("head/"); });
  return all;
}

GemmChoice example() {
  GemmChoice choice{gemm_providers().front(), {}};
  std::size_t i = 0;
  for (const GemmProduct& product : chosen_products(100)) {
    choice.products[key_of(product)] = gemm_providers()[i++ % gemm_providers().size()];
  }
  const ConvolutionShape shape{
      .height = 9, .width = 8, .in = 3, .out = 16, .kernel_height = 3, .kernel_width = 5, .stride = 2, .padding = 1};
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::weight_gradient}) {
    choice.products[key_of(convolution_product({shape, pass}, 7, Precision::bfloat16))] = gemm_providers().back();
  }
  return choice;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(GemmSelection, AChoiceIsReadBackFromItsJson) {
  const GemmChoice choice = example();
  EXPECT_EQ(parse_gemm_choice(json::parse(to_json(choice).dump()), "x"), choice);
  EXPECT_EQ(to_json({"a", {}}).dump(), R"({"default":"a","products":[]})");
}

TEST(GemmSelection, ARecordFromBeforeConvolutionsIsReadAsItWas) {
  const GemmChoice choice = parse_gemm_choice(
      json::parse(R"({"default": "a", "products": [{"transpose": "TN", "n": 24, "k": 96, "input": "bfloat16",
                      "output": "float", "rows": 64, "provider": "b"}]})"),
      "run.json");
  const GemmProduct product{.transpose_a = Transpose::yes, .m = 96, .n = 24, .k = 100, .input = Precision::bfloat16};
  EXPECT_EQ(choice, (GemmChoice{"a", {{key_of(product), "b"}}}));
  EXPECT_EQ(to_json(choice).dump().find("convolution"), std::string::npos);
}

TEST(GemmSelection, WrongJsonIsNamed) {
  const auto error = [](const char* key, const json& value) {
    json written = to_json(example());
    written["products"][1][key] = value;
    return tests::error_of([&] { parse_gemm_choice(json::parse(written.dump()), "run.json"); });
  };
  EXPECT_EQ(error("transpose", "XY"), "run.json: products[1]: transpose \"XY\": expected one of NN, NT, TN, TT");
  EXPECT_EQ(error("rows", 3), "run.json: products[1]: rows 3: expected a power of two");
  EXPECT_NE(error("input", "double").find("expected one of float, bfloat16, half"), std::string::npos);
  EXPECT_NE(error("n", -1).find("run.json: products[1].n"), std::string::npos);
  json convolution = to_json(example())["products"].back()["convolution"];
  ASSERT_TRUE(convolution.is_object());
  convolution["pass"] = "backward";
  EXPECT_EQ(error("convolution", convolution),
            "run.json: products[1].convolution: pass \"backward\": expected one of forward, input_gradient, "
            "weight_gradient");
  convolution["pass"] = "forward";
  convolution["stride"] = 0;
  EXPECT_EQ(error("convolution", convolution),
            "run.json: products[1].convolution: stride 0: expected a positive number");
  EXPECT_NE(error("convolution", 7).find("run.json: products[1].convolution"), std::string::npos);
  EXPECT_NE(error("provider", 7).find("run.json: products[1].provider"), std::string::npos);
  EXPECT_NE(tests::error_of([] { parse_gemm_choice(json::array(), "run.json"); }).find("run.json"), std::string::npos);
  EXPECT_NE(tests::error_of([] { parse_gemm_choice(json::object(), "run.json"); }).find("default"), std::string::npos);
}

TEST(GemmSelection, BertListsWhatItMultiplies) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const auto model = families::make_bert_question_answering(small, precision);
    const BatchShape shape{.samples = 2, .rows = 100, .longest = 60};
    double training = 0.0, inference = 0.0;
    for (const GemmProduct& product : model->products(shape, Purpose::training)) {
      training += static_cast<double>(product.count) * product.flops();
      const bool is_float = product.transpose_a == Transpose::yes || product.name == "head/forward";
      EXPECT_EQ(product.input, precision);
      EXPECT_EQ(product.output, is_float ? Precision::float32 : precision) << product.name;
    }
    for (const GemmProduct& product : model->products(shape, Purpose::inference)) {
      inference += static_cast<double>(product.count) * product.flops();
    }
    const double weights = 2.0 * (4.0 * 24 * 24 + 2.0 * 24 * 96) + 2.0 * 24;
    EXPECT_EQ(training, 6.0 * 100 * weights);
    EXPECT_EQ(inference, 2.0 * 100 * weights);
  }
}

TEST(GemmSelection, ARunsProductsAreThoseOfItsMicroBatchesAndItsEvaluation) {
  const auto model = families::make_bert_question_answering(small, Precision::float32);
  const auto rows = [&](const BatchShape& training, const BatchShape& evaluation) {
    std::multiset<std::size_t> all;
    for (const GemmProduct& product : products_of_run(*model, training, evaluation)) {
      if (product.transpose_b == Transpose::yes && product.n == 96) all.insert(product.m);
    }
    return all;
  };
  EXPECT_EQ(rows({1, 100, 60}, {1, 40, 40}), (std::multiset<std::size_t>{100, 50, 25, 12, 40, 20, 10, 5}));
  EXPECT_EQ(rows({1, 2, 2}, {}), (std::multiset<std::size_t>{2, 1}));
  EXPECT_EQ(rows({}, {}), std::multiset<std::size_t>());
}

class GemmCacheFile : public ::testing::Test {
 protected:
  bool measures(const GemmConfig& config) {
    const tests::KokkosRecorder recorder;
    select_gemm(ExecutionSpace(), config, products(100));
    for (const auto& allocation : recorder.allocations()) {
      if (allocation.label == "mylos::gemm::measure") return true;
    }
    return false;
  }

  tests::TemporaryDirectory directory_;
  const fs::path folder_ = directory_ / "a" / "b";
  const GemmCache cache_{folder_};
  const GemmChoice nothing_{default_gemm_provider(), {}};
  const bool has_several_ = gemm_providers().size() > 1;
};

TEST_F(GemmCacheFile, IsReadBack) {
  EXPECT_EQ(cache_.read(), nothing_);
  cache_.write(example());
  EXPECT_EQ(cache_.read(), example());
  EXPECT_EQ(GemmCache(folder_).read(), example());
}

TEST_F(GemmCacheFile, ADamagedOneCountsAsNothingAndIsWrittenAnew) {
  cache_.write(example());
  const std::string whole = text_of(cache_.file());
  json foreign = json::parse(whole), unbuilt = foreign;
  foreign["machine"] = "another";
  unbuilt["choice"]["default"] = "mkl";
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), foreign.dump(), unbuilt.dump()}) {
    tests::write_file(cache_.file(), damaged);
    EXPECT_EQ(cache_.read(), nothing_) << damaged;
    cache_.write(example());
    EXPECT_EQ(cache_.read(), example());
  }
}

TEST_F(GemmCacheFile, WhatCannotBeWrittenIsLeft) {
  tests::write_file(directory_ / "file", "");
  const GemmCache cache(directory_ / "file" / "below");
  cache.write(example());
  EXPECT_EQ(cache.read(), nothing_);
  GemmCache("").write(example());
  EXPECT_EQ(GemmCache("").read(), nothing_);
}

TEST_F(GemmCacheFile, WhatItHoldsIsNotMeasuredAgain) {
  const GemmConfig config{.cache = folder_};
  EXPECT_EQ(measures(config), has_several_);
  // On a busy machine one second may not suffice for all products; later starts measure the rest.
  for (int start = 0; start < 20 && measures(config); ++start) continue;
  EXPECT_FALSE(measures(config));
  EXPECT_EQ(cache_.read(), select_gemm(ExecutionSpace(), config, products(100)));
}

TEST_F(GemmCacheFile, WhatWasRecordedComesFirst) {
  const GemmConfig config{.recorded = example(), .cache = folder_};
  EXPECT_FALSE(measures(config));
  EXPECT_EQ(select_gemm(ExecutionSpace(), config, products(100)), example());
  // Products that the recorded run did not have are measured and added.
  const GemmChoice more = select_gemm(ExecutionSpace(), config, products(1000));
  EXPECT_EQ(more.products.size(), has_several_ ? 27u : 15u);
  for (const auto& [key, provider] : more.products) EXPECT_GE(std::min(key.n, key.k), 8u) << "too narrow for a choice";
  for (const auto& [key, provider] : example().products) EXPECT_EQ(more.products.at(key), provider);
}

TEST_F(GemmCacheFile, TensorFloatsAreComputedByTheOneThatHasThemOrRefused) {
  const GemmConfig config{.recorded = example(), .tf32 = true, .cache = folder_};
  if (!tf32_gemm_provider().empty()) {
    EXPECT_EQ(select_gemm(ExecutionSpace(), config, products(100)), (GemmChoice{tf32_gemm_provider(), {}}));
    return;
  }
  EXPECT_EQ(tests::error_of([&] { select_gemm(ExecutionSpace(), config, products(100)); }),
            "matrix products: this build has no TF32");
}

TEST_F(GemmCacheFile, ANamedProviderComputesEverything) {
  for (const std::string& provider : gemm_providers()) {
    const GemmConfig config{.provider = provider, .cache = folder_};
    EXPECT_FALSE(measures(config));
    EXPECT_EQ(select_gemm(ExecutionSpace(), config, products(100)), (GemmChoice{provider, {}}));
  }
}

}  // namespace
}  // namespace mylos::train
