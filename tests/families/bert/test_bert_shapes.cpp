#include "families/bert/bert_shapes.hpp"

#include <gtest/gtest.h>

#include "data/huggingface/model_names.hpp"

namespace mylos::families {
namespace {

TEST(BertShapes, SizesAreThoseOfTheReleases) {
  const NamedBert* base = find_bert_shape("bert-base");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->config.num_hidden_layers, 12u);
  EXPECT_EQ(base->config.hidden_size, 768u);
  EXPECT_EQ(base->config.num_attention_heads, 12u);
  EXPECT_EQ(base->config.intermediate_size, 3072u);
  EXPECT_EQ(base->config.vocab_size, 30522u);
  EXPECT_EQ(base->config.max_position_embeddings, 512u);
  EXPECT_EQ(find_bert_shape("bert-large")->config.hidden_size, 1024u);
  EXPECT_EQ(find_bert_shape("minilm")->config.num_hidden_layers, 6u);
}

TEST(BertShapes, EveryShapeIsAConfigurationAndCanBeFetchedByName) {
  for (const NamedBert& shape : bert_shapes()) {
    EXPECT_EQ(shape.config.hidden_size % shape.config.num_attention_heads, 0u) << shape.name;
    EXPECT_TRUE(data::is_model_name(shape.fetched)) << shape.name;
    EXPECT_EQ(find_bert_shape(shape.fetched), &shape) << "fetched under a name of the same shape";
  }
}

TEST(BertShapes, UnknownNamesHaveNone) {
  EXPECT_EQ(find_bert_shape("bert-base-uncased"), find_bert_shape("bert-base"));
  EXPECT_EQ(find_bert_shape("bert-base-cased"), nullptr) << "its vocabulary has another size";
  EXPECT_EQ(find_bert_shape(""), nullptr);
}

}  // namespace
}  // namespace mylos::families
