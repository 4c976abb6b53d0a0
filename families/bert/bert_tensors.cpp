#include "families/bert/bert_tensors.hpp"

namespace mylos::families {
namespace {

void replace_suffix(std::string& name, std::string_view suffix, std::string_view replacement) {
  if (name.ends_with(suffix)) name.replace(name.size() - suffix.size(), suffix.size(), replacement);
}

/// True for heads for other tasks and buffers that hold no weights.
bool is_ignored_by_bert(std::string_view name) {
  return is_other_bert_head(name) || name.starts_with("bert.pooler.") || name.ends_with("position_ids");
}

}  // namespace

bool is_other_bert_head(std::string_view name) {
  return name.starts_with("cls.") || name.starts_with("classifier.") || name.starts_with("score.");
}

std::string canonical_bert_name(std::string_view name) {
  std::string result(name);
  replace_suffix(result, "LayerNorm.gamma", "LayerNorm.weight");
  replace_suffix(result, "LayerNorm.beta", "LayerNorm.bias");
  for (const auto* part : {"embeddings.", "encoder.", "pooler."}) {
    if (result.starts_with(part)) return "bert." + result;
  }
  return result;
}

data::TensorNaming bert_tensor_naming() {
  return {.model = "a BERT",
          .canonical = canonical_bert_name,
          .is_ignored = is_ignored_by_bert,
          .is_other_head = is_other_bert_head};
}

}  // namespace mylos::families
