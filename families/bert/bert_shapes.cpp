#include "families/bert/bert_shapes.hpp"

#include <algorithm>
#include <array>

namespace mylos::families {
namespace {

BertShape encoder(std::size_t layers, std::size_t hidden, std::size_t heads) {
  BertShape config{.token_types = 2, .padding_token = 0};
  config.vocabulary = 30522;
  config.hidden = hidden;
  config.layers = layers;
  config.heads = heads;
  config.feed_forward = 4 * hidden;
  config.positions = 512;
  return config;
}

}  // namespace

std::span<const NamedBert> bert_shapes() {
  static const std::array shapes = {NamedBert{"bert-base", encoder(12, 768, 12), "bert-base-uncased"},
                                    NamedBert{"bert-large", encoder(24, 1024, 16), "bert-large-uncased"},
                                    NamedBert{"minilm", encoder(6, 384, 12), "minilm"}};
  return shapes;
}

const NamedBert* find_bert_shape(std::string_view name) {
  constexpr std::string_view uncased = "-uncased";
  const std::string_view bare = name.ends_with(uncased) ? name.substr(0, name.size() - uncased.size()) : name;
  const auto found = std::ranges::find(bert_shapes(), bare, &NamedBert::name);
  return found == bert_shapes().end() ? nullptr : &*found;
}

}  // namespace mylos::families
