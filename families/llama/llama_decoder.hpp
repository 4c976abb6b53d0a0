#pragma once

#include "families/interface/text_decoder.hpp"
#include "families/llama/llama_shape.hpp"

#include <memory>

namespace mylos::families {

/// Returns a decoder for the parameters of make_llama's table. `table` must outlive it.
std::unique_ptr<TextDecoder> make_llama_decoder(const LlamaShape& shape, Precision precision,
                                                const ParameterTable& table);

}  // namespace mylos::families
