#include "train/engine/selection/attention_selection.hpp"

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/samples/step_assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>

namespace mylos::train {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// More rows do not change which kernel is the fastest.
constexpr std::size_t most_timed_rows = 16384;

Precision attention_precision(const Json& object, const JsonLocation& location) {
  const std::string& name = string_member(object, "precision", location);
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    if (name == to_string(precision)) return precision;
  }
  location.fail(fmt::format("precision \"{}\": expected float, bfloat16 or half", printable(name)));
}

AttentionKey parse_attention_key(const Json& object, const JsonLocation& location) {
  const JsonLocation causal(location, "causal");
  return {.heads = count_member(object, "heads", location),
          .key_value_heads = count_member(object, "key_value_heads", location),
          .head_size = count_member(object, "head_size", location),
          .causal = as_bool(member(object, "causal", location), causal),
          .precision = attention_precision(object, location),
          .samples = count_member(object, "samples", location),
          .rows = count_member(object, "rows", location),
          .longest = count_member(object, "longest", location),
          .window = object.contains("window") ? count_member(object, "window", location) : no_window};
}

AttentionSeconds parse_attention_seconds(const Json& object, const JsonLocation& location) {
  AttentionSeconds seconds;
  for (const auto& [name, value] : as_object(object, location).items()) {
    const JsonLocation of_kernel(location, name);
    const std::optional<AttentionKernel> kernel = find_attention_kernel(name);
    if (!kernel) of_kernel.fail("no attention kernel has this name");
    seconds[*kernel] = as_number(value, of_kernel);
    if (!(seconds[*kernel] > 0.0)) of_kernel.fail("expected a positive number of seconds");
  }
  return seconds;
}

bool has_times_of(const AttentionSeconds& seconds, std::span<const AttentionKernel> kernels) {
  return std::ranges::all_of(kernels, [&](AttentionKernel kernel) { return seconds.contains(kernel); });
}

/// Returns the candidates that all ranks have.
std::vector<AttentionKernel> agreed_candidates(parallel::Communicator& ranks,
                                               const std::vector<AttentionKernel>& candidates) {
  const auto bit = [](AttentionKernel kernel) { return std::int64_t{1} << static_cast<int>(kernel); };
  std::int64_t mine = 0;
  for (const AttentionKernel kernel : candidates) mine |= bit(kernel);
  const std::vector<std::int64_t> all = parallel::gather(ranks, mine);
  const std::int64_t agreed = std::accumulate(all.begin(), all.end(), mine, std::bit_and<>());
  std::vector<AttentionKernel> kernels;
  std::ranges::copy_if(candidates, std::back_inserter(kernels),
                       [&](AttentionKernel kernel) { return (agreed & bit(kernel)) != 0; });
  return kernels;
}

/// Proves a kernel on all ranks. Returns the proof with a fault, of the first rank that has one, or the one with the
/// largest difference; the same on every rank.
AttentionProof agreed_proof(parallel::Communicator& ranks, AttentionKernel kernel, const AttentionRequest& request) {
  const AttentionProof mine = request.prove(kernel);
  const std::string fault = parallel::first_text(ranks, mine.fault);
  const std::vector<double> shares = parallel::gather(ranks, std::span<const double>(&mine.share, 1));
  if (!fault.empty()) return {.kernel = kernel, .fault = fault};
  return {.kernel = kernel, .share = *std::ranges::max_element(shares)};
}

/// Proves the candidates, and removes those that do not agree.
std::vector<AttentionProof> prove_candidates(parallel::Communicator& ranks, const AttentionRequest& request,
                                             const Notice& notice, std::vector<AttentionKernel>& candidates) {
  std::vector<AttentionProof> proofs;
  for (const AttentionKernel kernel : candidates) {
    if (kernel != AttentionKernel::portable) proofs.push_back(agreed_proof(ranks, kernel, request));
  }
  for (const AttentionProof& proof : proofs) {
    if (proof.agrees()) continue;
    if (request.asked) {
      const std::string other = setting("attention", to_string(AttentionKernel::portable));
      throw SettingError("attention", to_string(proof.kernel), fmt::format("{}; use {}", proof.fault, other));
    }
    notice(fmt::format("attention: {} is left out: {}", to_string(proof.kernel), proof.fault));
    std::erase(candidates, proof.kernel);
  }
  return proofs;
}

/// Returns the times of `kernels` from the cache or, if it lacks one, from a measurement.
AttentionSeconds known_seconds(std::span<const AttentionKernel> kernels, const AttentionRequest& request,
                               const Notice& notice, const AttentionMeasure& measure) {
  const TimedAttention attention = request.timed();
  const AttentionKey key = key_of(attention);
  const AttentionCache cache(request.cache);
  AttentionTimings timings = cache.read();
  if (has_times_of(timings[key], kernels)) return timings[key];
  timings[key] = measure(kernels, attention, notice);
  if (has_times_of(timings[key], kernels)) cache.write(timings);
  return timings[key];
}

}  // namespace

AttentionKey key_of(const TimedAttention& attention) {
  const std::vector<std::size_t>& lengths = attention.lengths;
  require(!lengths.empty(), "attention: no sequences");
  return {.heads = attention.shape.heads,
          .key_value_heads = attention.shape.key_value_heads,
          .head_size = attention.shape.head_size,
          .causal = attention.shape.causal,
          .precision = attention.precision,
          .samples = std::bit_floor(lengths.size()),
          .rows = std::bit_floor(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})),
          .longest = std::bit_floor(*std::ranges::max_element(lengths)),
          .window = static_cast<std::size_t>(attention.shape.window)};
}

OrderedJson to_json(const AttentionTimings& timings) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [key, seconds] : timings) {
    OrderedJson times = OrderedJson::object();
    for (const auto& [kernel, time] : seconds) times[std::string(to_string(kernel))] = time;
    list.push_back({{"heads", key.heads},
                    {"key_value_heads", key.key_value_heads},
                    {"head_size", key.head_size},
                    {"causal", key.causal},
                    {"precision", to_string(key.precision)},
                    {"samples", key.samples},
                    {"rows", key.rows},
                    {"longest", key.longest},
                    {"seconds", std::move(times)}});
    if (key.window != no_window) list.back()["window"] = key.window;
  }
  return list;
}

AttentionTimings parse_attention_timings(const nlohmann::json& value, const std::string& name) {
  const JsonLocation root(name);
  AttentionTimings timings;
  const Json& list = as_list(value, root);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonLocation location(root, i);
    const JsonLocation of_seconds(location, "seconds");
    const Json& entry = as_object(list[i], location);
    timings[parse_attention_key(entry, location)] =
        parse_attention_seconds(member(entry, "seconds", location), of_seconds);
  }
  return timings;
}

AttentionCache::AttentionCache(const std::filesystem::path& directory)
    : cache_(directory, "attention", directory.empty() ? std::string() : timed_machine()) {}

AttentionTimings AttentionCache::read() const {
  const std::optional<Json> saved = cache_.read();
  if (!saved) return {};
  try {
    return parse_attention_timings(*saved, "cache");
  } catch (const std::runtime_error&) {
    return {};  // only a cache: measured again and rewritten
  }
}

void AttentionCache::write(const AttentionTimings& timings) const { cache_.write(to_json(timings)); }

AttentionSeconds measure_on_device(std::span<const AttentionKernel> kernels, const TimedAttention& attention,
                                   const Notice& notice) {
  return measure_attention(ExecutionSpace(), kernels, attention, notice);
}

OrderedJson to_json(const std::vector<AttentionProof>& proofs) {
  OrderedJson object = OrderedJson::object();
  for (const AttentionProof& proof : proofs) {
    object[std::string(to_string(proof.kernel))] = proof.agrees() ? OrderedJson(proof.share) : OrderedJson(proof.fault);
  }
  return object;
}

AttentionSelection select_attention(parallel::Communicator& ranks, const AttentionRequest& request,
                                    const Notice& notice, const AttentionMeasure& measure) {
  std::vector<AttentionKernel> kernels = agreed_candidates(ranks, request.candidates);
  AttentionSelection selection{.proofs = prove_candidates(ranks, request, notice, kernels)};
  kernels = fast_attention(std::move(kernels));
  ensure(!kernels.empty(), "attention: the ranks have no kernel in common");
  selection.kernel = kernels.front();
  if (request.recorded && std::ranges::find(kernels, *request.recorded) != kernels.end()) {
    selection.kernel = *request.recorded;
  } else if (kernels.size() > 1 && !request.deterministic) {
    selection.seconds =
        parallel::on_first_rank(ranks, [&] { return known_seconds(kernels, request, notice, measure); });
    selection.kernel = fastest_attention(kernels, selection.seconds);
  }
  return selection;
}

std::vector<std::size_t> first_lengths(const SampleStream& stream, const TrainConfig& config, std::size_t ranks) {
  const std::vector<std::size_t> samples = stream.global_batch(0);
  const std::size_t most = config.micro_tokens == 0 ? most_timed_rows : std::min(config.micro_tokens, most_timed_rows);
  const MicroBatchLimit limit{.samples = config.micro_batch, .tokens = most, .parts = config.accumulation};
  const StepAssignment step = assign_step(stream, samples, limit, {.ranks = ranks, .longest_first = !runs_on_host});
  std::vector<std::size_t> lengths;
  std::size_t rows = 0;
  for (const std::size_t position : step.ranks.front().front()) {
    const std::size_t length = stream.rows_of(samples[position]);
    if (!lengths.empty() && rows + length > most) break;
    lengths.push_back(length);
    rows += length;
  }
  return lengths;
}

}  // namespace mylos::train
