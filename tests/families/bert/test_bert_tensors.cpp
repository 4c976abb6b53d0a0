#include "families/bert/bert_tensors.hpp"

#include <gtest/gtest.h>

namespace mylos::families {
namespace {

TEST(BertTensors, NamesAreTodays) {
  EXPECT_EQ(canonical_bert_name("bert.embeddings.LayerNorm.gamma"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(canonical_bert_name("encoder.layer.0.output.LayerNorm.beta"), "bert.encoder.layer.0.output.LayerNorm.bias");
  EXPECT_EQ(canonical_bert_name("pooler.dense.bias"), "bert.pooler.dense.bias");
  EXPECT_EQ(canonical_bert_name("qa_outputs.weight"), "qa_outputs.weight");
  EXPECT_EQ(canonical_bert_name("bert.encoder.layer.0.output.dense.weight"),
            "bert.encoder.layer.0.output.dense.weight");
}

TEST(BertTensors, OtherHeadsAndBuffersAreIgnored) {
  const data::TensorNaming naming = bert_tensor_naming();
  for (const auto* name : {"cls.predictions.bias", "bert.pooler.dense.bias", "bert.embeddings.position_ids",
                           "classifier.weight", "score.weight"}) {
    EXPECT_TRUE(naming.is_ignored(name)) << name;
  }
  for (const auto* name : {"qa_outputs.bias", "bert.encoder.layer.0.output.dense.bias", "classifiers.weight"}) {
    EXPECT_FALSE(naming.is_ignored(name)) << name;
  }
}

}  // namespace
}  // namespace mylos::families
