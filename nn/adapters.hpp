#pragma once

#include "core/parameters.hpp"

#include <span>
#include <string>
#include <vector>

/// Low-rank adapters (Hu et al. 2021): a linear layer computes y = W x + scale B A dropout(x), and only A (rank, in)
/// and B (out, rank) are trained.
namespace mylos::nn {

/// The adapter of one linear layer.
struct Adapter {
  std::string module;  ///< name of its weight, without ".weight"
  std::size_t rank = 0;
  float scale = 1.0f;
};

/// The adapters of a model.
struct Adapters {
  std::vector<Adapter> layers = {};
  float dropout = 0.0f;                   ///< probability for elements of x in training, in [0, 1)
  std::vector<std::string> trained = {};  ///< modules whose tensors, at any depth, are trained whole: "qa_outputs"

  bool empty() const { return layers.empty(); }
};

/// Names of an adapter's tensors, after that of the module.
inline constexpr const char* adapter_a = ".lora_A.weight";
inline constexpr const char* adapter_b = ".lora_B.weight";

/// Returns the modules that may have an adapter, without those of the head: "model.layers.0.self_attn.q_proj".
std::vector<std::string> linear_modules(const ParameterTable& table);
/// Returns whether a tensor is one of these modules, at any depth.
bool is_in(const std::vector<std::string>& modules, const ParameterTensor& tensor);

/// Adds the tensors of the adapters, and freezes all others but those of the modules that are trained whole. A starts
/// uniform in +-1/sqrt(in), and B at zero, as in PEFT. Errors: std::invalid_argument for a module that is not a linear
/// layer; std::runtime_error for a rank of 0 or above the width of the layer.
void add_adapters(ParameterTable& table, const Adapters& adapters);

}  // namespace mylos::nn
