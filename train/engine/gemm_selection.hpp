#pragma once

#include "core/kernels/gemm.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

/// Who computes a run's matrix products: the provider that was asked for, or for each product the fastest here, from
/// the record of another run, the cache or a measurement.
namespace mylos::train {

/// {"default": "onednn", "products": [{"transpose": "NT", "n", "k", "input", "output", "rows", "provider"}]}. A
/// convolution has also "convolution": {"pass": "forward", "height", "width", "in", "out", "kernel_height",
/// "kernel_width", "stride", "padding"}; records without one are of products.
nlohmann::ordered_json to_json(const GemmChoice& choice);
/// Errors: std::runtime_error beginning with `name`, where the value is not of this form. Whether this build has the
/// providers is seen by Gemm.
GemmChoice parse_gemm_choice(const nlohmann::json& value, const std::string& name);

/// This build has all providers of `choice`.
bool is_built(const GemmChoice& choice);

/// What a model multiplies in a run: for training over micro-batches up to `training` and down to an eighth of their
/// rows, and for evaluation. A shape without samples is left out.
std::vector<GemmProduct> products_of_run(const nn::Model& model, const BatchShape& training,
                                         const BatchShape& evaluation);

/// Timings that earlier runs have taken, in one file for each kind of machine and build. What cannot be read or was
/// taken elsewhere counts as nothing, and is written anew; what cannot be written is left.
class GemmCache {
 public:
  /// In `directory`; empty = no cache.
  explicit GemmCache(const std::filesystem::path& directory);

  const std::filesystem::path& file() const { return file_; }
  GemmChoice read() const;
  void write(const GemmChoice& choice) const;

 private:
  std::filesystem::path file_;
  std::string machine_;  ///< CPU, threads, providers with their versions
};

/// The choice for these products. With `tf32` the provider that rounds floats computes all. With `auto` and several
/// providers: what the configuration carries from a recorded run, else from the cache; products that neither knows are
/// measured, a second at most (four where there are convolutions), and added to the cache. On a device that is for
/// convolutions alone, where the build has several providers for them (core/kernels/gemm.hpp: timed_gemm_providers).
/// The fallback takes those that the time did not suffice for: the next start measures them. It also takes products of
/// fewer than 8 rows or columns of weights, which are never measured. Errors: std::runtime_error where `tf32` is asked
/// for and this build has no such provider.
GemmChoice select_gemm(const ExecutionSpace& space, const GemmConfig& config, const std::vector<GemmProduct>& products);

}  // namespace mylos::train
