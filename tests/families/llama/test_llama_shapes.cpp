#include "families/llama/llama_shapes.hpp"

#include <gtest/gtest.h>

namespace mylos::families {
namespace {

/// Returns the number of parameters of a Llama with an untied head, by formula.
std::size_t parameters_of(const LlamaShape& c) {
  const std::size_t attention = c.hidden * c.head_size * (2 * c.heads + 2 * c.key_value_heads);
  const std::size_t layer = attention + 3 * c.hidden * c.feed_forward + 2 * c.hidden;
  return 2 * c.vocabulary * c.hidden + c.layers * layer + c.hidden;
}

/// The counts published by the authors.
TEST(LlamaConfigs, HaveThePublishedCountsOfParameters) {
  EXPECT_EQ(parameters_of(find_llama_shape("llama-2-7b")->config), 6'738'415'616u);
  EXPECT_EQ(parameters_of(find_llama_shape("codellama-7b")->config), 6'738'546'688u);
  EXPECT_EQ(parameters_of(find_llama_shape("llama-3-8b")->config), 8'030'261'248u);
  EXPECT_EQ(parameters_of(find_llama_shape("tinyllama-1.1b")->config), 1'100'048'384u);
  EXPECT_EQ(parameters_of(find_llama_shape("codellama-13b")->config), 13'016'028'160u);
  EXPECT_EQ(parameters_of(find_llama_shape("codellama-34b")->config), 33'743'970'304u);
}

TEST(LlamaConfigs, AreFoundByTheNameThatIsFetched) {
  for (const NamedLlama& known : llama_shapes()) EXPECT_EQ(find_llama_shape(known.fetched), &known);
}

TEST(LlamaConfigs, OtherNamesHaveNone) {
  EXPECT_EQ(find_llama_shape("llama-2-7B"), nullptr);
  EXPECT_EQ(find_llama_shape(""), nullptr);
}

}  // namespace
}  // namespace mylos::families
