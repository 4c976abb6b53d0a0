#include "data/huggingface/other_architectures.hpp"

#include <gtest/gtest.h>

namespace mylos::data {
namespace {

TEST(OtherArchitectures, AreKnownByTheirNames) {
  EXPECT_EQ(architecture_obstacle("roberta-base"),
            "roberta-base is the name of a RoBERTa model; BERT models, Llamas and ResNets are supported, such as "
            "bert-base-uncased");
  EXPECT_EQ(architecture_obstacle("microsoft/DeBERTa-v3-base"),
            "microsoft/DeBERTa-v3-base is the name of a DeBERTa model; BERT models, Llamas and ResNets are supported, "
            "such as bert-base-uncased");
  for (const char* name :
       {"FacebookAI/xlm-roberta-large", "distilbert-base-uncased", "albert-base-v2", "gpt2",
        "google/electra-small-discriminator", "google-t5/t5-small", "openai-community/gpt2-medium"}) {
    EXPECT_NE(architecture_obstacle(name), "") << name;
  }
}

TEST(OtherArchitectures, NothingIsSaidOfOtherNames) {
  for (const char* name : {"bert-base-uncased", "google-bert/bert-large-cased", "minilm", "org/tiny", "roberta/mine",
                           "deepset/bert-base-cased-squad2", "x"}) {
    EXPECT_EQ(architecture_obstacle(name), "") << name;
  }
}

}  // namespace
}  // namespace mylos::data
