#include "families/bert/bert_shapes.hpp"

#include <gtest/gtest.h>

#include "data/huggingface/model_names.hpp"

namespace mylos::families {
namespace {

TEST(BertShapes, SizesAreThoseOfTheReleases) {
  const NamedBert* base = find_bert_shape("bert-base");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->config.layers, 12u);
  EXPECT_EQ(base->config.hidden, 768u);
  EXPECT_EQ(base->config.heads, 12u);
  EXPECT_EQ(base->config.feed_forward, 3072u);
  EXPECT_EQ(base->config.vocabulary, 30522u);
  EXPECT_EQ(base->config.positions, 512u);
  EXPECT_EQ(find_bert_shape("bert-large")->config.hidden, 1024u);
  EXPECT_EQ(find_bert_shape("minilm")->config.layers, 6u);
}

TEST(BertShapes, EveryShapeIsAConfigurationAndCanBeFetchedByName) {
  for (const NamedBert& shape : bert_shapes()) {
    EXPECT_EQ(shape.config.hidden % shape.config.heads, 0u) << shape.name;
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
