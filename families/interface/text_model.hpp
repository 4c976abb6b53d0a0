#pragma once

#include "core/kernels/attention/attention.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/interface/body_output.hpp"
#include "families/interface/text_decoder.hpp"
#include "nn/heads/head_settings.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A model on texts as tasks see it, whatever its family.
namespace mylos::families {

/// A short name of linear layers, and the end of their modules' names.
struct AdapterName {
  std::string_view name, module;
};

struct TextModel {
  std::string text;  ///< its sizes: "12 layers, hidden 768, 12 heads"
  std::size_t vocabulary = 0;
  std::size_t positions = 0;       ///< the longest sequence
  AttentionShape attention = {};   ///< its kernel is that of the network and the decoder
  float dropout = 0.0f;            ///< in training, in [0, 1)
  float attention_dropout = 0.0f;  ///< the same of the attention's weights
  float initializer_range = 0.0f;  ///< standard deviation of weights that no file has
  data::TensorNaming naming = {};
  std::optional<std::int32_t> begin_token = {};     ///< begins each document (BOS), unless nullopt
  std::vector<std::int32_t> end_tokens = {};        ///< end a generated text; the first ends each document (EOS)
  std::optional<nn::HeadSettings> next_token = {};  ///< the head of BodyOutput::next_tokens
  std::span<const AdapterName> adapter_names = {};

  /// Returns the body with `head` and the kernel of `attention`. Errors: std::invalid_argument if sizes do not fit
  /// together.
  std::unique_ptr<nn::Model> network(const nn::HeadSettings& head, Precision precision) const {
    return make_network(head, attention.kernel, precision);
  }

  /// Returns a decoder of a network with the head `next_token`, whose `table` must outlive it.
  std::unique_ptr<TextDecoder> decoder(Precision precision, const ParameterTable& table) const {
    return make_decoder(attention.kernel, precision, table);
  }

  // Set by the family; make_decoder only if it gives next_tokens.
  std::function<std::unique_ptr<nn::Model>(const nn::HeadSettings&, AttentionKernel, Precision)> make_network;
  std::function<std::unique_ptr<TextDecoder>(AttentionKernel, Precision, const ParameterTable&)> make_decoder = {};
};

/// Returns the sizes with another attention kernel.
template <class Shape>
Shape with_attention(Shape shape, AttentionKernel kernel) {
  shape.attention = kernel;
  return shape;
}

/// Returns the model that `config` describes, of a family that gives `output`. `dropout` replaces that of the
/// configuration unless it is nullopt. Errors: std::runtime_error with the file and the key; UsageError if its family
/// does not give `output`.
TextModel read_text_model(const data::ModelConfig& config, BodyOutput output, std::optional<double> dropout = {});

}  // namespace mylos::families
