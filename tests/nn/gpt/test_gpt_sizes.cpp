#include "nn/gpt/gpt_sizes.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace mylos::nn {
namespace {

constexpr GptShape small{.vocabulary = 100, .hidden = 16, .layers = 3, .heads = 2, .feed_forward = 64, .positions = 32};
constexpr BatchShape batch{.samples = 2, .rows = 20, .longest = 10};

TEST(GptSizes, HasTheParametersOfItsShape) {
  const auto model = make_gpt_sizes(small, Precision::bfloat16);
  std::size_t parameters = 0;
  for (const ParameterTensor& row : model->table().tensors()) parameters += row.size;
  EXPECT_EQ(parameters, 100u * 16 + 3 * (12 * 16 * 16 + 2 * 16) + 16);
  EXPECT_EQ(model->table().units().size(), 5u) << "embeddings, layers, and a head that borrows them";
}

TEST(GptSizes, CountsOperationsAndWhatIsComputedAgain) {
  const auto model = make_gpt_sizes(small, Precision::bfloat16);
  const double layer = 12 * 16 * 16 + 16 * 11, head = 100 * 16;
  EXPECT_DOUBLE_EQ(model->training_flops(batch), 6.0 * 20 * (3 * layer + head));
  // Two of three layers, without their last product.
  EXPECT_DOUBLE_EQ(model->training_flops(batch, Recompute::layer),
                   6.0 * 20 * (3 * layer + head) + 2.0 * 20 * 2 * (layer - 16 * 64));
}

TEST(GptSizes, KeepsLessWhereLayersAreRecomputed) {
  const auto model = make_gpt_sizes(small, Precision::bfloat16);
  const auto kept = [&](Recompute recompute) {
    Arena arena;
    model->plan(arena, batch, ParameterStore::Purpose::training, recompute);
    return arena.peak();
  };
  EXPECT_LT(kept(Recompute::layer), kept(Recompute::attention));
  EXPECT_LT(kept(Recompute::attention), kept(Recompute::none));
}

TEST(GptSizes, RefusesHeadsThatDoNotDivideTheWidth) {
  GptShape odd = small;
  odd.heads = 3;
  EXPECT_THROW(make_gpt_sizes(odd, Precision::bfloat16), std::invalid_argument);
}

}  // namespace
}  // namespace mylos::nn
