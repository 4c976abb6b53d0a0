#include "families/llama/llama_tensors.hpp"

#include <gtest/gtest.h>

namespace mylos::families {
namespace {

TEST(LlamaTensors, ABareModelsNamesStandBelowModel) {
  EXPECT_EQ(canonical_llama_name("embed_tokens.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(canonical_llama_name("layers.3.mlp.up_proj.weight"), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(canonical_llama_name("norm.weight"), "model.norm.weight");
  for (const auto* name : {"model.layers.0.self_attn.q_proj.weight", "lm_head.weight", "model.norm.weight"}) {
    EXPECT_EQ(canonical_llama_name(name), name);
  }
}

TEST(LlamaTensors, BuffersAndATiedHeadAreIgnored) {
  const auto* const buffer = "model.layers.0.self_attn.rotary_emb.inv_freq";
  for (const bool tied : {false, true}) {
    const data::TensorNaming naming = llama_tensor_naming(tied);
    EXPECT_TRUE(naming.is_ignored(buffer));
    EXPECT_EQ(naming.is_ignored("lm_head.weight"), tied);
    EXPECT_FALSE(naming.is_ignored("model.layers.0.self_attn.q_proj.bias"));
    EXPECT_EQ(naming.model, "a Llama");
  }
}

}  // namespace
}  // namespace mylos::families
