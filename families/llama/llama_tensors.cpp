#include "families/llama/llama_tensors.hpp"

namespace mylos::families {
namespace {

bool is_rotary_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

bool is_ignored_by_tied_llama(std::string_view name) { return is_rotary_buffer(name) || name == "lm_head.weight"; }

}  // namespace

std::string canonical_llama_name(std::string_view name) {
  for (const auto* part : {"embed_tokens.", "layers.", "norm."}) {
    if (name.starts_with(part)) return "model." + std::string(name);
  }
  return std::string(name);
}

data::TensorNaming llama_tensor_naming(bool tied) {
  return {.model = "a Llama",
          .canonical = canonical_llama_name,
          .is_ignored = tied ? is_ignored_by_tied_llama : is_rotary_buffer};
}

}  // namespace mylos::families
