#include "families/model_families.hpp"

#include <gtest/gtest.h>

#include "data/huggingface/model_names.hpp"
#include "families/bert/bert_config.hpp"
#include "families/llama/llama_config.hpp"
#include "families/resnet/resnet_config.hpp"
#include "tests/support/temporary.hpp"

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::families {
namespace {

BertShape known_bert(std::string_view name) { return read_bert_config(*find_known_model(name, BodyOutput::tokens)); }

TEST(KnownModels, BertsHaveTheSizesOfTheReleases) {
  BertShape base{.token_types = 2, .padding_token = 0};
  base.vocabulary = 30522;
  base.hidden = 768;
  base.layers = base.heads = 12;
  base.feed_forward = 3072;
  base.positions = 512;
  EXPECT_EQ(known_bert("bert-base"), base);
  BertShape large = base, minilm = base;
  large.hidden = 1024;
  large.layers = 24;
  large.heads = 16;
  large.feed_forward = 4096;
  EXPECT_EQ(known_bert("bert-large"), large);
  minilm.hidden = 384;
  minilm.layers = 6;
  minilm.feed_forward = 1536;
  EXPECT_EQ(known_bert("minilm"), minilm);
}

/// Returns the number of parameters of a known Llama, whose head is not tied, by formula.
std::size_t parameters_of(std::string_view name) {
  const LlamaShape c = read_llama_config(*find_known_model(name, BodyOutput::next_tokens));
  EXPECT_FALSE(c.tied);
  EXPECT_EQ(c.rms_norm_epsilon, 1e-5f);
  const std::size_t attention = c.hidden * c.head_size * (2 * c.heads + 2 * c.key_value_heads);
  const std::size_t layer = attention + 3 * c.hidden * c.feed_forward + 2 * c.hidden;
  return 2 * c.vocabulary * c.hidden + c.layers * layer + c.hidden;
}

/// The counts published by the authors.
TEST(KnownModels, LlamasHaveThePublishedCountsOfParameters) {
  EXPECT_EQ(parameters_of("llama-2-7b"), 6'738'415'616u);
  EXPECT_EQ(parameters_of("codellama-7b"), 6'738'546'688u);
  EXPECT_EQ(parameters_of("llama-3-8b"), 8'030'261'248u);
  EXPECT_EQ(parameters_of("tinyllama-1.1b"), 1'100'048'384u);
  EXPECT_EQ(parameters_of("codellama-13b"), 13'016'028'160u);
  EXPECT_EQ(parameters_of("codellama-34b"), 33'743'970'304u);
}

/// The counts of the published weight files, of tensors that are stored once.
TEST(KnownModels, NetworksHaveThePublishedCountsOfParameters) {
  const std::vector<std::pair<const char*, std::size_t>> published = {
      {"llama-3.1-8b", 8'030'261'248u},    {"llama-3.2-1b", 1'235'814'400u},    {"llama-3.2-3b", 3'212'749'824u},
      {"mistral-7b-v0.1", 7'241'732'096u}, {"mistral-7b-v0.3", 7'248'023'552u}, {"qwen2.5-0.5b", 494'032'768u},
      {"qwen2.5-1.5b", 1'543'714'304u},    {"qwen2.5-3b", 3'085'938'688u},      {"qwen2.5-7b", 7'615'616'512u},
      {"qwen2.5-14b", 14'770'033'664u},    {"qwen2.5-32b", 32'763'876'352u},    {"qwen3-0.6b", 596'049'920u},
      {"qwen3-1.7b", 1'720'574'976u},      {"qwen3-4b", 4'022'468'096u},        {"qwen3-8b", 8'190'735'360u},
      {"qwen3-14b", 14'768'307'200u},      {"qwen3-32b", 32'762'123'264u},      {"smollm2-135m", 134'515'008u},
      {"smollm2-360m", 361'821'120u},      {"smollm2-1.7b", 1'711'376'384u}};
  for (const auto& [name, parameters] : published) {
    const TextModel model = read_text_model(*find_known_model(name), BodyOutput::next_tokens);
    const auto network = model.make_network(*model.next_token, AttentionKernel::portable, Precision::bfloat16);
    std::size_t count = 0;
    for (const ParameterTensor& tensor : network->table().tensors()) count += tensor.size;
    EXPECT_EQ(count, parameters) << name;
  }
}

TEST(ModelFamilies, QuantizedModelsAreRefused) {
  const auto message = [](const char* quantized) {
    Json json = parse_json(find_known_model("llama-3.2-1b")->config, "F");
    json["quantization_config"] = parse_json(quantized, "F");
    return tests::error_of([&] { read_text_model({json, "F"}, BodyOutput::next_tokens); });
  };
  EXPECT_EQ(message("null"), "(nothing was thrown)");
  EXPECT_EQ(message(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})"),
            "F: quantization_config is not supported; use the model that is not quantized, or remove the key if the "
            "weights are not");
}

TEST(KnownModels, EachIsFoundByItsNameAndByTheNameThatIsFetched) {
  EXPECT_EQ(known_models(BodyOutput::tokens).size(), 3u);
  EXPECT_EQ(known_models(BodyOutput::next_tokens).size(), 26u);
  EXPECT_EQ(known_models(BodyOutput::images).size(), 5u);
  for (const BodyOutput output : {BodyOutput::tokens, BodyOutput::next_tokens, BodyOutput::images}) {
    for (const std::string& name : known_models(output)) {
      const data::KnownModel* known = find_known_model(name);
      EXPECT_EQ(known->name, name);
      EXPECT_EQ(find_known_model(known->fetched, output), known) << known->fetched;
      EXPECT_TRUE(data::is_model_name(known->fetched)) << known->fetched;
    }
  }
  EXPECT_EQ(find_known_model("bert-base-uncased"), find_known_model("bert-base"));
}

TEST(KnownModels, OtherNamesAndDirectoriesAreNone) {
  EXPECT_EQ(find_known_model("bert-base", BodyOutput::next_tokens), nullptr);
  EXPECT_EQ(find_known_model("bert-base-cased"), nullptr) << "its vocabulary has another size";
  EXPECT_EQ(find_known_model("llama-2-7B"), nullptr);
  EXPECT_EQ(find_known_model("resnet20"), nullptr);
  EXPECT_EQ(find_known_model(""), nullptr);
  const tests::TemporaryDirectory directory;
  const tests::WorkingDirectory inside(directory.path());
  std::filesystem::create_directory("bert-base");
  EXPECT_EQ(find_known_model("bert-base"), nullptr);
  EXPECT_NE(find_known_model("bert-large"), nullptr);
}

}  // namespace
}  // namespace mylos::families
