#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/huggingface/adapter_config.hpp"

/// The modules of a model that an adapter means, by the rules of PEFT.
namespace mylos::data {

/// A linear module with an adapter: y = W x + scale * B (A x).
struct AdapterTarget {
  std::string module;
  std::size_t rank;
  double scale;  ///< alpha / rank, or alpha / sqrt(rank)
};

/// Returns those of `linear_modules` that get an adapter, in their order. "all-linear" does not mean `output_layer`,
/// and modules that are trained whole get none. Throws std::runtime_error with the target, the key of rank_pattern or
/// the key of alpha_pattern that matches nothing.
std::vector<AdapterTarget> adapter_targets(const AdapterConfig& config, std::span<const std::string> linear_modules,
                                           std::string_view output_layer = "lm_head");

/// Returns those of `modules` that are trained whole, sorted. Throws std::runtime_error with a name of modules_to_save
/// that the model lacks, except for names that PEFT adds for every model of the task.
std::vector<std::string> trained_modules(const AdapterConfig& config, std::span<const std::string> modules);

}  // namespace mylos::data
