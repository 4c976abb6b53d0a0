#pragma once

#include "core/kernels/products/gemm.hpp"
#include "parallel/communicator/communicator.hpp"
#include "train/engine/selection/timing_cache.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// Selects the provider of a run's matrix products: the requested one, or the fastest for each product according to a
/// recorded run, the cache or a measurement.
namespace mylos::train {

/// Serialises a choice: {"default": "onednn", "products": [{"transpose": "NT", "n", "k", "input", "output", "rows",
/// "provider"}]}. A convolution also has "convolution": {"pass": "forward", "height", "width", "in", "out",
/// "kernel_height", "kernel_width", "stride", "padding"}; records without it are matrix products.
nlohmann::ordered_json to_json(const GemmChoice& choice);
/// Parses the output of to_json. Errors: std::runtime_error beginning with `name` if the value does not have this form.
/// Does not check that this build has the providers; Gemm does.
GemmChoice parse_gemm_choice(const nlohmann::json& value, const std::string& name);

/// Returns whether this build has all providers of `choice`.
bool is_built(const GemmChoice& choice);

/// Returns the matrix products of a run: training with micro-batches of `training` down to an eighth of their rows, and
/// evaluation. A shape without samples is skipped.
std::vector<GemmProduct> products_of_run(const nn::Model& model, const BatchShape& training,
                                         const BatchShape& evaluation);

/// Caches choices of providers between runs (timing_cache.hpp).
class GemmCache {
 public:
  /// Uses a file in `directory`; an empty path disables the cache.
  explicit GemmCache(const std::filesystem::path& directory);

  const std::filesystem::path& file() const { return cache_.file(); }
  /// Returns the choice; the default provider for everything if there is none, or if this build lacks a provider.
  GemmChoice read() const;
  void write(const GemmChoice& choice) const;

 private:
  TimingCache cache_;
};

/// Selects the providers for `products`. With `tf32`, the provider that rounds floats to TF32 computes everything. With
/// `auto`, `is_timed` and several providers, uses the choice recorded in the configuration, then the cache. Unknown
/// products are measured for at most a second (four seconds with convolutions) and added to the cache. Device builds
/// time only convolutions, if they have several providers for them (core/kernels/products/gemm.hpp:
/// timed_gemm_providers). The fallback computes products that could not be measured in this time; the next start
/// measures them. It also computes products with fewer than 8 rows or columns of weights, which are never measured.
/// Errors: std::runtime_error if `tf32` is requested and this build has no such provider.
GemmChoice select_gemm(const ExecutionSpace& space, const GemmConfig& config, const std::vector<GemmProduct>& products);

/// Selects the providers for `products` on the first rank. If the default provider has never run on a device, proves
/// the products on every rank (core/kernels/products/gemm_proof.hpp); if one is wrong, or the provider's library is
/// missing, the portable provider computes everything, and the first rank prints why. Collective, the same on every
/// rank. Errors: those of select_gemm, and a wrong product if the configuration names the provider.
GemmChoice choose_gemm(parallel::Communicator& ranks, const ExecutionSpace& space, const GemmConfig& config,
                       const std::function<std::vector<GemmProduct>()>& products);

}  // namespace mylos::train
