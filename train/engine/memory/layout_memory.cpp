#include "train/engine/memory/layout_memory.hpp"

#include "core/kernels/products/gathered_convolution.hpp"
#include "core/kernels/products/gemm_measure.hpp"
#include "parallel/planning/staging.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/observed_state.hpp"
#include "train/engine/pieces.hpp"

#include <algorithm>
#include <span>

namespace mylos::train {
namespace {

std::size_t activation_bytes(const Workload& workload, const BatchShape& largest, nn::Recompute recompute) {
  Arena training, evaluation;
  workload.model.plan(training, largest, ParameterStore::Purpose::training, recompute);
  const BatchShape evaluated = workload.evaluation;
  if (evaluated.samples > 0) {
    workload.model.plan(evaluation, evaluated, ParameterStore::Purpose::inference, nn::Recompute::none);
  }
  return std::max(training.peak(), evaluation.peak());
}

std::size_t scratch_bytes(const Workload& workload, const BatchShape& largest, const TeamProcessor& processor) {
  const std::size_t training = workload.model.scratch_bytes(largest, ParameterStore::Purpose::training, processor);
  const BatchShape evaluated = workload.evaluation;
  if (evaluated.samples == 0) return training;
  return std::max(training, workload.model.scratch_bytes(evaluated, ParameterStore::Purpose::inference, processor));
}

/// Returns the bytes of the largest piece for loading and exporting tensors.
std::size_t largest_piece(const ParameterTable& table) {
  std::size_t largest = 0;
  for (const ParameterTensor& tensor : table.tensors()) largest = std::max(largest, tensor.size);
  return std::min(largest, piece_elements) * sizeof(float);
}

/// Returns the bytes of the observations that a step's state tensors are updated from.
std::size_t observed_bytes(const Workload& workload, std::size_t steps, const StepSplit& split) {
  const std::size_t batch = largest_global_batch(workload.samples, steps);
  return ObservedState::bytes(workload.model.table(), (batch + split.ranks - 1) / split.ranks, batch);
}

/// Returns the memory for writing files, reporting, and stacks and heaps of threads. The constants are measured.
std::size_t output_bytes(const Workload& workload, std::size_t threads) {
  constexpr std::size_t reports = std::size_t{11} << 18, checkpoints = std::size_t{5} << 20;
  constexpr std::size_t of_thread = std::size_t{64} << 10;
  return largest_piece(workload.model.table()) + workload.kept_bytes + reports + checkpoints + threads * of_thread;
}

/// Returns the receive buffers of a rank in the memory where it computes: host memory for any sum; device memory only
/// for sums in a fixed order, used by --deterministic and bfloat16 gradients.
std::size_t received_bytes(const TrainConfig& config, const RankLayout& layout, const RankCounts& ranks) {
  const std::size_t count = layout.split.ranks;
  if (ranks.on_host) return parallel::exchange_bytes(count, config.parallel.bucket);
  const bool ordered = layout.split.micro_batch_groups > 0 || config.parallel.bfloat16_gradients;
  return ordered ? parallel::device_exchange_bytes(count, config.parallel.bucket) : 0;
}

/// Returns the memory of matrix products besides their operands. On a device: the workspace of cuBLASLt, the default
/// provider (core/kernels/gpu/gemm_cublaslt.cpp), which multiplies 16-bit operands directly; when running on the
/// device, note_products replaces it with the value reported by the chosen provider.
std::size_t product_bytes(std::span<const GemmProduct> products, const RankCounts& ranks) {
  constexpr std::size_t device_workspace = std::size_t{40} << 20;
  if (!ranks.on_host) return products.empty() ? 0 : device_workspace + GatheredConvolution::bytes(products, false);
  return widened_bytes(products) + host_product_bytes(products, ranks.threads);
}

/// Computes the memory of passes over plan.largest besides the parameters.
void count_passes(MemoryPlan& plan, const Workload& workload, nn::Recompute recompute, const RankCounts& ranks) {
  plan.activations = activation_bytes(workload, plan.largest, recompute);
  plan.scratch = scratch_bytes(workload, plan.largest, ranks.processor());
  const std::vector<GemmProduct> products = largest_products(workload, plan);
  plan.output = ranks.on_host ? output_bytes(workload, ranks.threads) + workload.samples.loaded_bytes(plan.largest) : 0;
  plan.workspace = product_bytes(products, ranks);
}

/// Plans a layout with a given micro-batch limit.
MemoryPlan plan_for(const Workload& workload, const TrainConfig& config, std::size_t steps,
                    const MicroBatchLimit& limit, const RankLayout& layout, const RankCounts& ranks) {
  const MicroBatchBounds bounds = bound_micro_batches(workload.samples, steps, limit, layout.split);
  MemoryPlan plan;
  plan.limit = limit;
  plan.largest = bounds.largest;
  plan.layout = layout;
  plan.strategy = {.kind = layout.strategy,
                   .bfloat16_gradients = config.parallel.bfloat16_gradients,
                   .tree_sums = layout.split.micro_batch_groups > 0,
                   .micro_batches = bounds.micro_batches};
  const parallel::StrategyMemory held = parallel::strategy_memory({.settings = plan.strategy,
                                                                   .shards = layout.shards,
                                                                   .precision = config.precision,
                                                                   .table = workload.model.table()});
  plan.values = held.values;
  plan.gradients = held.gradients + observed_bytes(workload, steps, layout.split);
  plan.exchange = held.exchange + received_bytes(config, layout, ranks);
  plan.optimizer = held.slices * config.optimizer.kind().slots.size() * sizeof(float);
  count_passes(plan, workload, config.recompute, ranks);
  // Tensors are loaded in host memory, which a device build does not plan.
  plan.loading = ranks.on_host ? largest_piece(workload.model.table()) : 0;
  return plan;
}

/// Returns the limit of a micro-batch for steps of up to `largest` samples.
MicroBatchLimit micro_batch_limit(const TrainConfig& config, const WorkKind& work, std::size_t largest) {
  MicroBatchLimit limit{.samples = largest, .tokens = config.micro_tokens, .parts = config.accumulation};
  if (config.micro_batch == 0) return limit;
  if (work.sizes_batches) {
    limit.tokens = config.micro_batch * work.rows;
  } else {
    limit.samples = std::min(config.micro_batch, largest);
  }
  return limit;
}

}  // namespace

bool has_chosen_split(const TrainConfig& config) {
  return config.micro_batch > 0 || config.micro_tokens > 0 || config.accumulation > 0 || config.parallel.deterministic;
}

MemoryPlan plan_layout(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankLayout& layout, const RankCounts& ranks) {
  const std::size_t largest = largest_global_batch(workload.samples, steps);
  const bool chosen = has_chosen_split(config);
  MicroBatchLimit limit = micro_batch_limit(config, workload.samples.work(), largest);
  MemoryPlan plan = plan_for(workload, config, steps, limit, layout, ranks);
  const std::size_t asked = plan.largest.samples;
  if (!chosen) limit.samples = plan.limit.samples = asked;
  while (!chosen && plan.total() > available && limit.samples > 1) {
    limit.samples = (limit.samples + 1) / 2;
    plan = plan_for(workload, config, steps, limit, layout, ranks);
  }
  plan.asked = asked;
  return plan;
}

MemoryPlan with_micro_batch(MemoryPlan plan, const BatchShape& shape, const Workload& workload, nn::Recompute recompute,
                            const RankCounts& ranks) {
  plan.largest = shape;
  count_passes(plan, workload, recompute, ranks);
  return plan;
}

std::vector<GemmProduct> largest_products(const Workload& workload, const MemoryPlan& plan) {
  std::vector<GemmProduct> products = workload.model.products(plan.largest, ParameterStore::Purpose::training);
  const BatchShape evaluated = workload.evaluation;
  if (evaluated.samples == 0) return products;
  for (const GemmProduct& product : workload.model.products(evaluated, ParameterStore::Purpose::inference)) {
    products.push_back(product);
  }
  return products;
}

}  // namespace mylos::train
