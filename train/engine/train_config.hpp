#pragma once

#include "core/base/files/directory_lock.hpp"
#include "core/base/precision.hpp"
#include "core/kernels/products/gemm_choice.hpp"
#include "nn/learning_rate.hpp"
#include "nn/optimizer_config.hpp"
#include "nn/recompute.hpp"
#include "parallel/communicator/exchange_memory.hpp"
#include "parallel/sharding/strategy_kind.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Settings of the trainer that do not depend on the task. Each field documents its unit and an example.
namespace mylos::train {

/// Selects the providers of matrix products.
struct GemmConfig {
  static constexpr const char* automatic = "auto";

  std::string provider = automatic;         ///< name of a provider; "auto" = the fastest of the build for each product
  std::optional<GemmChoice> recorded = {};  ///< choice of `auto` in the run that this one repeats
  bool tf32 = false;                        ///< round float operands to TF32, with the provider that supports it
  std::filesystem::path cache = {};         ///< directory of cached timings; empty = no cache
  bool is_timed = true;                     ///< whether `auto` may time providers; otherwise the default one
};

/// The distribution of a run over ranks.
struct ParallelConfig {
  std::optional<parallel::StrategyKind> strategy = {};  ///< nullopt: replicated, or sharded if only that fits
  std::size_t shard_size = 0;                     ///< ranks that shard a unit in hybrid mode, e.g. 4; 0 = all of a node
  std::size_t bucket = parallel::default_bucket;  ///< communication bucket in bytes: the most that a rank receives at a
                                                  ///< time of a long array
  bool bfloat16_gradients = false;                ///< exchange gradients rounded to bfloat16
  bool deterministic = false;                     ///< the same bits for any number of ranks and any sharding strategy
  std::size_t micro_batch_groups = 8;             ///< micro-batch groups per step with `deterministic`; a power of two
};

/// The layout of an earlier start of the run, or of the run that this one repeats. The layout depends on free memory,
/// so planning again may give another one, and with it another order of summation.
struct RecordedLayout {
  std::size_t ranks = 0;
  std::size_t micro_batch = 0;  ///< largest micro-batch, in the unit of TrainConfig::micro_batch
  parallel::StrategyKind strategy = parallel::StrategyKind::replicated;
  std::string device = {};  ///< device name in a device build, e.g. "NVIDIA H200"
};

/// Settings for writing checkpoints and resuming from one.
struct CheckpointConfig {
  std::size_t every_steps = 0;        ///< steps between checkpoints, e.g. 500; 0 = no step interval
  bool every_epoch = false;           ///< at the end of each epoch; every_steps takes precedence
  double every_seconds = 600.0;       ///< seconds between checkpoints; 0 = no time interval; the others take precedence
  std::size_t keep = 2;               ///< number of checkpoints to keep
  std::size_t writers = 0;            ///< ranks that write a checkpoint, e.g. 16; 0 = 4 per node, at most 64
  bool stop_on_error = true;          ///< a failed write ends the run
  std::filesystem::path resume = {};  ///< file to resume from; empty = start at step 1
  bool extend = false;                ///< the run of `resume` may have been planned with fewer steps

  bool regular() const { return every_steps > 0 || every_epoch || every_seconds > 0.0; }
};

/// Settings for ranking the models of a run.
struct BestConfig {
  std::string by = "loss";   ///< "loss", a metric of the task, or training_loss_name
  std::size_t patience = 0;  ///< evaluations without improvement before stopping; 0 = never stop
  double min_delta = 0.0;    ///< an improvement by at most this much counts as none; best/ is replaced all the same
  std::size_t keep = 1;      ///< number of best models to keep, with best/
};

struct TrainConfig {
  std::filesystem::path output;         ///< output directory of the run
  const DirectoryLock* lock = nullptr;  ///< on the first rank, the lock of `output`; null: not locked
  std::size_t steps = 0;  ///< total steps of the run, e.g. 7380; 0 = `epochs` times the task's steps per epoch
  double epochs = 2.0;
  std::size_t micro_batch = 0;   ///< samples, or images, per micro-batch of a rank; 0 = the most that fit
  std::size_t micro_tokens = 0;  ///< tokens per micro-batch of a rank, e.g. 4096; 0 = no limit
  std::size_t accumulation = 0;  ///< micro-batches per step and rank, e.g. 4; 0 = determined by the fields above
  std::optional<RecordedLayout> recorded_layout = {};  ///< reused with the same number of ranks if no setting
                                                       ///< contradicts it and it fits
  nn::Recompute recompute = nn::Recompute::none;
  std::vector<std::string>
      freeze;  ///< tensors that are not trained (nn::Model::freeze), e.g. {"embeddings", "layers.0-5"}
  nn::ScheduleKind schedule = nn::ScheduleKind::linear;
  double learning_rate = 3e-5;              ///< peak
  double learning_rate_min = 0.0;           ///< lower bound of the schedule after warm-up
  std::vector<std::size_t> decay_steps;     ///< for the step schedule: ascending, e.g. {100, 200}
  double decay_factor = 0.1;                ///< for the step schedule
  double decay_fraction = 0.1;              ///< for the warmup-stable-decay schedule: part of the steps
  double decay_power = 1.0;                 ///< for the polynomial schedule
  double warmup_ratio = 0.0;                ///< fraction of the steps, e.g. 0.1
  std::optional<std::size_t> warmup_steps;  ///< takes precedence over the ratio unless 0
  nn::OptimizerConfig optimizer;
  double clip = 1.0;  ///< largest global gradient norm; 0 = no clipping
  /// Time to end the run after the current step, as SIGUSR1 would. It is enough if one rank sets it.
  std::optional<std::chrono::steady_clock::time_point> stop_at;
  std::uint64_t seed = 42;
  Precision precision = Precision::float32;
  double initial_loss_scale = 0x1p16;  ///< for half: a power of two, see LossScale
  GemmConfig gemm;
  ParallelConfig parallel;
  CheckpointConfig checkpoints;
  std::size_t evaluate_every = 0;         ///< steps between evaluations; 0 = an epoch
  std::size_t evaluate_every_epochs = 0;  ///< epochs between evaluations; takes precedence unless 0
  bool evaluate_on_start = false;         ///< evaluate once before step 1, as a baseline
  BestConfig best;
  /// Takes the results of each step before the next one is launched, for benchmarks that measure between steps.
  bool waits_for_each_step = false;

  /// Returns why `output` belongs to this run no longer; empty if it does. Known to the first rank.
  std::string output_loss() const;
  /// Throws std::runtime_error if there is such a reason. For the first rank, before it replaces or removes files
  /// there.
  void check_output() const;
};

/// Returns the learning-rate schedule of a run of `steps` steps. The warm-up takes `warmup_steps` steps if set, else
/// ceil(warmup_ratio * steps).
nn::LearningRateSchedule learning_rate_schedule(const TrainConfig& config, std::size_t steps);

}  // namespace mylos::train
