#pragma once

#include "core/kernels/gemm_choice.hpp"
#include "core/numeric.hpp"
#include "nn/learning_rate.hpp"
#include "nn/optimizer.hpp"
#include "nn/recompute.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the trainer is told, whatever the task. Each field says its unit and an example.
namespace mylos::train {

/// Which optimizer, with its settings.
enum class OptimizerKind { adamw, sgd };

/// "adamw" or "sgd".
std::string_view to_string(OptimizerKind kind);

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  nn::AdamWConfig adamw;
  nn::SgdConfig sgd;
};

/// Who computes matrix products.
struct GemmConfig {
  static constexpr const char* automatic = "auto";

  std::string provider = automatic;         ///< a provider, or for each product the fastest of the build
  std::optional<GemmChoice> recorded = {};  ///< what `auto` meant in the run that this one repeats
  bool tf32 = false;                        ///< float operands are rounded to TF32, by the provider that can
  std::filesystem::path cache = {};         ///< directory of the timings taken so far; empty = none are kept
};

/// How many ranks share a run.
struct ParallelConfig {
  std::optional<parallel::ModeKind> mode = {};    ///< nothing: replicated, or sharded where only that fits
  std::size_t shard_size = 0;                     ///< ranks that split a unit in hybrid mode, e.g. 4; 0 = a node's
  std::size_t bucket = parallel::default_bucket;  ///< bytes that a rank receives at a time of a long array
  bool bfloat16_gradients = false;                ///< gradients are exchanged rounded
  bool deterministic = false;                     ///< the same bits for any number of ranks and any mode
  std::size_t leaves = 8;                         ///< micro-batches of every step where deterministic; a power of two
};

/// How an earlier start of the run, or the run that this one repeats, was laid out. Free memory decided that, so that
/// planning anew may give another layout, and sums in another order.
struct RecordedLayout {
  std::size_t ranks = 0;
  std::size_t micro_batch = 0;  ///< the largest one, as TrainConfig counts it
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  std::string device = {};  ///< of a device build its name, e.g. "NVIDIA H200"
};

/// When checkpoints are written, and which one a run begins from.
struct CheckpointConfig {
  std::size_t every_steps = 0;        ///< e.g. 500; 0 = not by steps
  bool every_epoch = false;           ///< at the end of each; every_steps wins
  double every_seconds = 600.0;       ///< 0 = not by time; both others win
  std::size_t keep = 2;               ///< how many stay
  std::size_t writers = 0;            ///< ranks that write one, e.g. 16; 0 = 4 on each node, 64 in all
  bool stop_on_error = true;          ///< a checkpoint that cannot be written ends the run
  std::filesystem::path resume = {};  ///< the file to go on from; empty = from step 1
  bool extend = false;                ///< the run of that file may have been planned with fewer steps

  bool regular() const { return every_steps > 0 || every_epoch || every_seconds > 0.0; }
};

struct TrainConfig {
  std::filesystem::path output;  ///< the run's directory
  std::size_t steps = 0;         ///< of the whole run, e.g. 7380; 0 = epochs times the task's steps
  double epochs = 2.0;
  std::size_t micro_batch = 0;   ///< samples at once on a rank, or images; 0 = the largest that fits
  std::size_t micro_tokens = 0;  ///< the same in tokens, e.g. 4096; 0 = no limit
  std::size_t accumulation = 0;  ///< micro-batches a step on a rank, e.g. 4; 0 = as many as the others make
  std::optional<RecordedLayout> recorded_layout = {};  ///< taken again on as many ranks where nothing else is asked for
                                                       ///< and it fits
  nn::Recompute recompute = nn::Recompute::none;
  nn::ScheduleKind schedule = nn::ScheduleKind::linear;
  double learning_rate = 3e-5;              ///< peak
  double learning_rate_min = 0.0;           ///< no schedule goes below it after warm-up
  std::vector<std::size_t> decay_steps;     ///< of the step schedule: ascending, e.g. {100, 200}
  double decay_factor = 0.1;                ///< of the step schedule
  double warmup_ratio = 0.0;                ///< of the steps, e.g. 0.1
  std::optional<std::size_t> warmup_steps;  ///< wins over the ratio where it is not 0
  OptimizerConfig optimizer;
  double clip = 1.0;  ///< largest global gradient norm; 0 = no clipping
  /// When the run is to end, at a step's end, as SIGUSR1 would end it. One rank that knows is enough.
  std::optional<std::chrono::steady_clock::time_point> stop_at;
  std::uint64_t seed = 42;
  Precision precision = Precision::float32;
  double initial_loss_scale = 0x1p16;  ///< of half: a power of two, see LossScale
  GemmConfig gemm;
  ParallelConfig parallel;
  CheckpointConfig checkpoints;
  std::size_t evaluate_every = 0;         ///< steps; 0 = an epoch
  std::size_t evaluate_every_epochs = 0;  ///< the same in epochs; wins where it is not 0
  bool evaluate_on_start = false;         ///< once before step 1, for a figure to compare with
  std::string best_by = "loss";           ///< "loss" or a metric of the task
  std::size_t patience = 0;               ///< evaluations without a better one before stopping; 0 = never
};

/// The learning rate over a run of `steps` steps. W = ceil(ratio * steps) unless steps of warm-up are given.
nn::LearningRateSchedule learning_rate_schedule(const TrainConfig& config, std::size_t steps);

}  // namespace mylos::train
