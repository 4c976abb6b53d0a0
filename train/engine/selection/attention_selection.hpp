#pragma once

#include "core/base/notice.hpp"
#include "core/kernels/attention/attention_candidates.hpp"
#include "core/kernels/attention/attention_measure.hpp"
#include "core/kernels/attention/attention_proof.hpp"
#include "parallel/communicator/communicator.hpp"
#include "train/engine/samples/sample_stream.hpp"
#include "train/engine/selection/timing_cache.hpp"
#include "train/engine/train_config.hpp"

#include <nlohmann/json_fwd.hpp>

#include <compare>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Selects the attention kernel of a run that trains, from the candidates that are proven on the device of every rank:
/// the one that is asked for, the recorded one, the only one, or the fastest according to the cache or a measurement.
namespace mylos::train {

/// The properties by which timings are remembered.
struct AttentionKey {
  std::size_t heads = 0;            ///< A
  std::size_t key_value_heads = 0;  ///< KV
  std::size_t head_size = 0;        ///< D
  bool causal = false;
  Precision precision = Precision::float32;
  /// Buckets, rounded down to powers of two: sequences, their rows together, and the rows of the longest one.
  std::size_t samples = 0, rows = 0, longest = 0;
  std::size_t window = no_window;

  auto operator<=>(const AttentionKey&) const = default;
};

/// Errors: std::invalid_argument if there are no sequences.
AttentionKey key_of(const TimedAttention& attention);

using AttentionTimings = std::map<AttentionKey, AttentionSeconds>;

/// Serialises timings: [{"heads", "key_value_heads", "head_size", "causal", "precision": "bfloat16", "samples", "rows",
/// "longest", "seconds": {"tensor-cores": 1.2e-4, "cudnn": 1.1e-4}}], and "window" if there is one.
nlohmann::ordered_json to_json(const AttentionTimings& timings);
/// Parses the output of to_json. Errors: std::runtime_error beginning with `name` if the value does not have this form.
AttentionTimings parse_attention_timings(const nlohmann::json& value, const std::string& name);

/// Caches timings between runs (timing_cache.hpp). Those of other versions of cuDNN are not used.
class AttentionCache {
 public:
  /// Uses a file in `directory`; an empty path disables the cache.
  explicit AttentionCache(const std::filesystem::path& directory);

  const std::filesystem::path& file() const { return cache_.file(); }
  AttentionTimings read() const;
  void write(const AttentionTimings& timings) const;

 private:
  TimingCache cache_;
};

/// What the kernel is selected from.
struct AttentionRequest {
  std::vector<AttentionKernel> candidates = {};  ///< of this rank (core/kernels/attention/attention_candidates.hpp)
  bool asked = false;                            ///< --attention names the only candidate
  /// Compares a candidate with the portable kernel on this rank's device; not called for that one.
  std::function<AttentionProof(AttentionKernel)> prove = {};
  std::optional<AttentionKernel> recorded = {};  ///< in the run that this one repeats
  bool deterministic = false;                    ///< does not depend on timings
  std::function<TimedAttention()> timed = {};    ///< the attention that is timed; called if there is a choice
  std::filesystem::path cache = {};              ///< directory of cached timings; empty = no cache
};

struct AttentionSelection {
  AttentionKernel kernel = AttentionKernel::portable;
  AttentionSeconds seconds = {};  ///< of the kernels that it was selected from; empty if it was not selected by timing
  std::vector<AttentionProof> proofs = {};  ///< of the candidates, each that of the rank with the largest difference
};

/// Returns {"tensor-cores": 0.21, "cudnn": "out has 3 elements that are not numbers"}: the largest difference from the
/// portable kernel as a fraction of what is allowed, or why a kernel was left out. Empty if no kernel was proven.
nlohmann::ordered_json to_json(const std::vector<AttentionProof>& proofs);

/// Times kernels, as measure_attention does on ExecutionSpace().
using AttentionMeasure =
    std::function<AttentionSeconds(std::span<const AttentionKernel>, const TimedAttention&, const Notice&)>;
AttentionSeconds measure_on_device(std::span<const AttentionKernel> kernels, const TimedAttention& attention,
                                   const Notice& notice);

/// Selects the same kernel on all ranks, from those that are candidates on each of them and agree with the portable one
/// on each device, without the portable one if there are others. Takes the recorded kernel if it is among them, the
/// first one in deterministic runs, and otherwise the fastest. All ranks prove; only the first one times, and it reads
/// and writes the cache. Times of a measurement that left out a kernel are not cached. `notice` gets a line for each
/// kernel that is left out, and those of `measure`. Collective. Errors: SettingError on every rank if the kernel
/// that is asked for does not agree.
AttentionSelection select_attention(parallel::Communicator& ranks, const AttentionRequest& request,
                                    const Notice& notice, const AttentionMeasure& measure = measure_on_device);

/// Returns the rows of the samples in the first micro-batch of the first step on the first of `ranks` ranks, at most
/// 16,384 rows in all but at least one sample. Without a configured micro-batch, that of a run with enough memory.
std::vector<std::size_t> first_lengths(const SampleStream& stream, const TrainConfig& config, std::size_t ranks);

}  // namespace mylos::train
