#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/huggingface/adapter_config.hpp"
#include "data/huggingface/pretrained.hpp"

/// The tensors of a LoRA adapter, and the weights of the base with the adapter in them.
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

/// Returns the names of all modules that hold tensors, at any depth, for trained_modules.
std::vector<std::string> modules_of(std::span<const TensorSpec> tensors);

/// Returns the name in adapter_model.safetensors of a tensor: A and B of module m are m.lora_A.weight and
/// m.lora_B.weight, and the tensors of modules trained whole have the names of the base.
std::string adapter_tensor_name(std::string_view tensor);

/// Returns the tensors of an adapter in the order of the file: A (rank, in) and B (out, rank) of each target, and the
/// tensors of the modules trained whole. `base` has the tensors of the base model. Throws std::runtime_error if a rank
/// exceeds the smaller side of its weight.
std::vector<TensorSpec> adapter_tensors(const AdapterConfig& config, std::span<const AdapterTarget> targets,
                                        std::span<const std::string> trained, std::span<const TensorSpec> base);

/// Returns names and shapes for PretrainedWriter, which with adapter_format() writes a directory that PEFT reads.
std::vector<TensorShape> written_adapter_tensors(std::span<const TensorSpec> tensors);
WeightFormat adapter_format(Precision precision = Precision::float32);

/// The values of adapter_model.safetensors.
class AdapterWeights {
 public:
  /// Reads the header. Throws std::runtime_error with the file and the tensor unless it has the `wanted` tensors, each
  /// with its shape, and no other.
  AdapterWeights(const FileReader& files, const std::filesystem::path& directory, std::span<const TensorSpec> wanted);
  bool contains(const std::string& tensor) const { return files_.entries().contains(tensor); }
  /// Returns a reader of a tensor by its name in `wanted`. The weights must outlive it.
  TensorReader reader(const std::string& tensor) const { return tensor_reader(files_.entries().at(tensor)); }

 private:
  WeightFiles files_;
};

/// Puts an adapter into the weights of its base: W + scale * B A, summed in float.
class MergedAdapter {
 public:
  /// `linear_modules` and `base` are the linear modules and the tensors of the base model. Errors: those of
  /// adapter_targets, trained_modules, adapter_tensors and AdapterWeights.
  MergedAdapter(const FileReader& files, const std::filesystem::path& directory, const AdapterConfig& config,
                std::span<const std::string> linear_modules, std::span<const TensorSpec> base);
  /// Returns a reader of a tensor of the merged model, given that of the base. Keeps A and B of one module in memory.
  /// The adapter must outlive it.
  TensorReader merged(const TensorSpec& tensor, TensorReader base) const;

 private:
  std::vector<AdapterTarget> targets_;
  AdapterWeights weights_;
};

}  // namespace mylos::data
