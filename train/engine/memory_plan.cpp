#include "train/engine/memory_plan.hpp"

#include "core/base/error.hpp"
#include "core/base/quantities.hpp"
#include "core/base/setting_error.hpp"
#include "core/kernels/gathered_convolution.hpp"
#include "core/kernels/gemm_measure.hpp"
#include "train/engine/gemm_selection.hpp"
#include "train/engine/memory.hpp"
#include "train/engine/observed_state.hpp"
#include "train/engine/pieces.hpp"
#include "train/engine/run_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace mylos::train {
namespace {

double gibibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1u << 30); }

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
/// provider (core/kernels/cuda/gemm_cublaslt.cpp), which multiplies 16-bit operands directly; when running on the
/// device, note_products replaces it with the value reported by the chosen provider.
std::size_t product_bytes(std::span<const GemmProduct> products, const RankCounts& ranks) {
  constexpr std::size_t device_workspace = std::size_t{40} << 20;
  if (!ranks.on_host) return products.empty() ? 0 : device_workspace + GatheredConvolution::bytes(products);
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
  const std::size_t slots = config.optimizer.kind == OptimizerKind::adamw ? 2 : 1;
  const MicroBatchBounds bounds = bound_micro_batches(workload.samples, steps, limit, layout.split);
  MemoryPlan plan;
  plan.limit = limit;
  plan.largest = bounds.largest;
  plan.layout = layout;
  plan.mode = {.kind = layout.mode,
               .bfloat16_gradients = config.parallel.bfloat16_gradients,
               .tree_sums = layout.split.micro_batch_groups > 0,
               .micro_batches = bounds.micro_batches};
  const parallel::ModeMemory held =
      parallel::mode_memory(plan.mode, layout.shards, workload.model.table(), config.precision);
  plan.values = held.values;
  plan.gradients = held.gradients + observed_bytes(workload, steps, layout.split);
  plan.exchange = held.exchange + received_bytes(config, layout, ranks);
  plan.optimizer = held.slices * slots * sizeof(float);
  count_passes(plan, workload, config.recompute, ranks);
  // Tensors are loaded in host memory, which a device build does not plan.
  plan.loading = ranks.on_host ? largest_piece(workload.model.table()) : 0;
  return plan;
}

/// Returns whether the user chose the split of a step.
bool is_cut(const TrainConfig& config) {
  return config.micro_batch > 0 || config.micro_tokens > 0 || config.accumulation > 0 || config.parallel.deterministic;
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

/// Plans a layout. Unless the user chose the micro-batch, halves it until it fits or has one sample.
MemoryPlan plan_mode(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                     const RankLayout& layout, const RankCounts& ranks) {
  const std::size_t largest = largest_global_batch(workload.samples, steps);
  const bool chosen = is_cut(config);
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

/// Plans the recorded layout. Returns nullopt if the user asks for another one or it does not fit.
std::optional<MemoryPlan> plan_recorded(const Workload& workload, TrainConfig config, std::size_t steps,
                                        std::size_t available, const RankCounts& ranks) {
  if (!config.recorded_layout || is_cut(config)) return std::nullopt;
  const RecordedLayout& recorded = *config.recorded_layout;
  if (recorded.ranks != ranks.ranks || config.parallel.mode.value_or(recorded.mode) != recorded.mode) {
    return std::nullopt;
  }
  config.micro_batch = recorded.micro_batch;
  const MemoryPlan plan = plan_mode(workload, config, steps, available, lay_out(config, recorded.mode, ranks), ranks);
  return plan.total() <= available ? std::optional(plan) : std::nullopt;
}

/// Returns the tokens of the longest training sample.
std::size_t longest_sample(const SampleStream& stream, std::size_t steps) {
  std::size_t longest = 0;
  for (std::size_t step = 0; step < std::min(steps, stream.steps_per_epoch()); ++step) {
    for (const std::size_t sample : stream.global_batch(step)) longest = std::max(longest, stream.rows_of(sample));
  }
  return longest;
}

/// Fails on settings that the run's model or samples do not support.
void check_settings(const Workload& workload, const TrainConfig& config, std::size_t steps) {
  if (!workload.model.can_recompute(config.recompute)) {
    throw SettingError("recompute", nn::to_string(config.recompute),
                       "this model always keeps what its backward pass reads; use " + setting("recompute", "none"));
  }
  if (config.micro_tokens == 0) return;
  const std::size_t longest = longest_sample(workload.samples, steps);
  if (longest <= config.micro_tokens) return;
  throw SettingError(
      "micro-tokens", std::to_string(config.micro_tokens),
      fmt::format("the longest sequence that is trained on has {} tokens; use at least that many", longest));
}

/// If batches count images, a full batch needs a sample for every rank.
void check_samples_of_ranks(const SampleStream& stream, std::size_t steps, const RankCounts& ranks) {
  const WorkKind work = stream.work();
  if (!work.sizes_batches) return;
  const std::size_t samples = largest_global_batch(stream, steps);
  if (samples >= ranks.ranks) return;
  fail(fmt::format("a full batch has {}, fewer than the {}; use smaller {}, a larger {} or fewer ranks",
                   count_of(samples, work.sample), count_of(ranks.ranks, "rank"), work.samples, setting("batch")));
}

/// Checks whether the run fits in memory, and searches for settings that do.
struct Search {
  const Workload& workload;
  std::size_t steps, available;
  RankCounts ranks;

  bool fits(TrainConfig config, parallel::ModeKind mode) const {
    if (!is_cut(config)) config.micro_batch = 1;  // the last one that a run tries
    try {
      return plan_mode(workload, config, steps, available, lay_out(config, mode, ranks), ranks).total() <= available;
    } catch (const std::runtime_error&) {
      return false;  // a layout that is impossible is no advice
    }
  }
};

/// Splits a step about twice as finely, if the user chose the split; returns false if it cannot be split further.
bool cut_finer(TrainConfig& config, const Search& search) {
  constexpr std::size_t most_micro_batch_groups = 1024;
  const auto halve = [](std::size_t& value, std::size_t least) {
    if (value <= least) return false;
    value = std::max(least, (value + 1) / 2);
    return true;
  };
  if (config.parallel.deterministic) return (config.parallel.micro_batch_groups *= 2) <= most_micro_batch_groups;
  const std::size_t batch = largest_global_batch(search.workload.samples, search.steps);
  if (config.accumulation > 0) return (config.accumulation *= 2) <= batch;
  if (config.micro_tokens > 0) return halve(config.micro_tokens, longest_sample(search.workload.samples, search.steps));
  if (search.workload.samples.work().sizes_batches) {
    return config.micro_batch > 0 && halve(config.micro_batch, longest_sample(search.workload.samples, search.steps));
  }
  config.micro_batch = std::min(config.micro_batch, batch);
  return config.micro_batch > 0 && halve(config.micro_batch, 1);
}

std::string words_of_cut(const TrainConfig& config) {
  if (config.parallel.deterministic) return setting("leaves", std::to_string(config.parallel.micro_batch_groups));
  if (config.accumulation > 0) return setting("gradient-accumulation-steps", std::to_string(config.accumulation));
  if (config.micro_tokens > 0) return setting("micro-tokens", std::to_string(config.micro_tokens));
  return setting("micro-batch", std::to_string(config.micro_batch));
}

/// Returns `words`, with a finer split of a step if that is also needed; empty if nothing fits.
std::string fitting_words(const Search& search, TrainConfig config, parallel::ModeKind mode, std::string words) {
  if (!words.empty() && search.fits(config, mode)) return words;
  while (cut_finer(config, search)) {
    if (!search.fits(config, mode)) continue;
    return words.empty() ? words_of_cut(config) : fmt::format("{} {}", words_of_cut(config), words);
  }
  return {};
}

/// Returns the longest sequence length, in steps of 32 tokens, that fits in `mode` with one sequence per micro-batch; 0
/// if none does. Below 160 tokens a window has almost no room for context.
std::size_t fitting_length(const Search& search, TrainConfig config, parallel::ModeKind mode) {
  constexpr std::size_t step = 32, least = 160;
  if (config.accumulation > 0 || config.parallel.deterministic) return 0;
  if (search.workload.samples.work().sizes_batches) return 0;  // the length of samples is fixed
  config.micro_batch = 1;
  config.micro_tokens = 0;
  const auto& [workload, steps, available, ranks] = search;
  constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  MemoryPlan plan = plan_mode(workload, config, steps, unlimited, lay_out(config, mode, ranks), ranks);
  for (std::size_t length = (plan.largest.longest - 1) / step * step; length >= least; length -= step) {
    plan.largest = {1, length, length};
    count_passes(plan, workload, config.recompute, ranks);
    if (plan.total() <= available) return length;
  }
  return 0;
}

std::string length_words(const TrainConfig& config, std::size_t length) {
  const std::string number = std::to_string(length), words = setting("max-length", number);
  if (config.micro_tokens > 0) return fmt::format("{} {}", words, setting("micro-tokens", number));
  return config.micro_batch > 1 ? fmt::format("{} {}", words, setting("micro-batch", "1")) : words;
}

/// Returns the smallest number of ranks with the same memory each on which the run fits, and their sharding strategy;
/// empty if no number is enough.
std::string words_of_more_ranks(Search search, const TrainConfig& config, const TrainConfig& recomputing) {
  using parallel::ModeKind;
  constexpr std::size_t most = 4096;
  const bool on_host = search.ranks.on_host;
  const std::size_t threads = search.ranks.threads;
  for (std::size_t count = 2 * search.ranks.ranks; count <= most; count *= 2) {
    search.ranks = {.ranks = count, .nodes = 1, .of_node = count, .on_host = on_host, .threads = threads};
    for (const ModeKind mode : {ModeKind::sharded_gradients, ModeKind::sharded}) {
      for (const TrainConfig* each : {&config, &recomputing}) {
        if (!search.fits(*each, mode)) continue;
        return fmt::format("{} {} with {}{}", count, on_host ? "ranks of as much memory" : "GPUs",
                           setting("mode", to_string(mode)),
                           each == &config ? "" : " " + setting("recompute", "layer"));
      }
    }
  }
  return {};
}

/// Suggests shorter sequences and more ranks, if no setting of this launch is enough.
std::string farther_advice(const Search& search, TrainConfig config, TrainConfig recomputing, parallel::ModeKind mode) {
  std::string all;
  std::size_t length = fitting_length(search, config, mode);
  if (length > 0) {
    all = "it fits with " + length_words(config, length);
  } else if (length = fitting_length(search, recomputing, mode); length > 0) {
    all = fmt::format("it fits with {} {}", setting("recompute", "layer"), length_words(config, length));
  }
  config.parallel.shard_size = recomputing.parallel.shard_size = 0;
  const std::string ranks = words_of_more_ranks(search, config, recomputing);
  if (!ranks.empty()) all += fmt::format("{}on {}", all.empty() ? "it fits " : ", or ", ranks);
  return all.empty() ? "use a smaller model" : all;
}

/// Returns alternative changes of the settings, each of which makes the run fit.
std::string advice(const Search& search, const TrainConfig& config, parallel::ModeKind mode) {
  using parallel::ModeKind;
  const bool may_recompute =
      config.recompute != nn::Recompute::layer && search.workload.model.can_recompute(nn::Recompute::layer);
  const bool may_shard = search.ranks.ranks > 1 && mode != ModeKind::sharded;
  TrainConfig recomputing = config;
  recomputing.recompute = nn::Recompute::layer;
  std::string all;
  const auto offer = [&](const TrainConfig& changed, ModeKind changed_mode, const std::string& words) {
    const std::string fitting = fitting_words(search, changed, changed_mode, words);
    if (!fitting.empty()) all += fmt::format("{}{}", all.empty() ? "it fits with " : ", or with ", fitting);
  };
  offer(config, mode, "");
  const std::string recompute = setting("recompute", "layer"), shard = setting("mode", "sharded");
  if (may_recompute) offer(recomputing, mode, recompute);
  if (may_shard) offer(config, ModeKind::sharded, shard);
  if (all.empty() && may_recompute && may_shard) {
    offer(recomputing, ModeKind::sharded, fmt::format("{} {}", recompute, shard));
  }
  return all.empty() ? farther_advice(search, config, may_recompute ? recomputing : config, mode) : all;
}

/// Measures the memory of the run's matrix products besides their operands: the peak of resident memory while they are
/// computed. If the earlier peak is above the current memory, the difference is allocated meanwhile, so that a new peak
/// shows.
std::size_t measured_workspace(const MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm,
                               const Workload& workload) {
  const std::vector<GemmProduct> products = gemm.choice().products.empty()
                                                ? largest_products(workload, plan)
                                                : products_of_run(workload.model, plan.largest, workload.evaluation);
  Vector<std::byte> held;
  std::size_t begin = 0;
  warm_up(space, gemm, products, [&] {
    const std::size_t most = peak_resident_memory(), now = resident_memory();
    held = Vector<std::byte>("mylos::memory::held", most - std::min(most, now));
    begin = std::max(peak_resident_memory(), resident_memory());
  });
  const std::size_t most = peak_resident_memory();
  return (most - std::min(most, begin)) * 9 /
         8;  // an eighth more: all threads may hold their blocks at the same moment
}

}  // namespace

void note_products(MemoryPlan& plan, const ExecutionSpace& space, const Gemm& gemm, const Workload& workload) {
  if constexpr (!runs_on_host) plan.workspace = gemm.workspace_bytes(largest_products(workload, plan));
  release_unused_memory();
  plan.program = resident_memory();
  if constexpr (runs_on_host) plan.workspace = measured_workspace(plan, space, gemm, workload) + gemm.growth_bytes();
  plan.before = peak_resident_memory();  // includes the memory of measuring, above any earlier peak
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

MemoryPlan plan_memory(const Workload& workload, const TrainConfig& config, std::size_t steps, std::size_t available,
                       const RankCounts& ranks) {
  using parallel::ModeKind;
  check_settings(workload, config, steps);
  check_samples_of_ranks(workload.samples, steps, ranks);
  const WorkKind work = workload.samples.work();
  if (std::optional<MemoryPlan> recorded = plan_recorded(workload, config, steps, available, ranks)) return *recorded;
  const ModeKind mode = config.parallel.mode.value_or(ModeKind::replicated);
  MemoryPlan plan = plan_mode(workload, config, steps, available, lay_out(config, mode, ranks), ranks);
  if (plan.total() > available && !config.parallel.mode && ranks.ranks > 1) {
    plan = plan_mode(workload, config, steps, available, lay_out(config, ModeKind::sharded, ranks), ranks);
  }
  if (plan.total() > available) {
    fail(
        fmt::format("memory: {:.2f} GiB are needed (values {:.2f}, gradients {:.2f}, optimizer {:.2f}, activations of "
                    "{} {} {:.2f}), {:.2f} GiB are free{}; {}",
                    gibibytes(plan.total()), gibibytes(plan.values), gibibytes(plan.gradients + plan.exchange),
                    gibibytes(plan.optimizer), work.count(plan.largest.rows), work.name,
                    gibibytes(plan.activations + plan.scratch), gibibytes(available), address_space_note(),
                    advice({workload, steps, available, ranks}, config, plan.layout.mode)));
  }
  return plan;
}

}  // namespace mylos::train
