#include "tasks/interface/loaded_model.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

int made = 0;
nn::HeadSettings counted_head(const families::TextModel& model) {
  ++made;
  return *model.next_token;
}

constexpr const char* config =
    R"({"model_type": "llama", "vocab_size": 12, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 16, "rms_norm_eps": 1e-6})";

class LoadedLlama : public testing::Test {
 protected:
  void SetUp() override {
    made = 0;
    tests::write_file(directory_ / "config.json", config);
    run_.task.model = directory_.path();
  }
  LoadedModel load() const {
    const TextHead head{families::BodyOutput::next_tokens, counted_head, "ForCausalLM", {"CAUSAL_LM"}};
    return {FileReader(), run_, head, nullptr, [](const std::string&) {}};
  }

  tests::TemporaryDirectory directory_;
  RunConfig run_;
};

TEST_F(LoadedLlama, MakesTheNetworkOnceAfterTheKernelIsChosen) {
  LoadedModel model = load();
  EXPECT_EQ(model.attention().shape.kernel, AttentionKernel::portable);
  model.set_attention(AttentionKernel::cudnn);
  EXPECT_EQ(made, 0);
  const nn::Model& network = model.network();
  EXPECT_EQ(&model.network(), &network);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(model.text().attention.kernel, AttentionKernel::cudnn);
  EXPECT_EQ(model.attention().shape.kernel, AttentionKernel::cudnn);
}

TEST_F(LoadedLlama, ExportsTheTensorsOfTheNetworkIfTheRunTrains) {
  EXPECT_EQ(load().exporter(), nullptr);
  run_.task.train = "documents.jsonl";
  const LoadedModel model = load();
  model.network();
  EXPECT_EQ(model.exporter()->files(), std::vector{model.network().table().tensors().size()});
}

}  // namespace
}  // namespace mylos::tasks
