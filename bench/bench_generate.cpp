#include "app/bench/bench.hpp"
#include "app/bench/memory_bandwidth.hpp"
#include "app/program/compute.hpp"
#include "bench/bench_program.hpp"
#include "core/base/error.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/kernels/products/openblas_kernels.hpp"
#include "families/llama/llama_decoder.hpp"
#include "families/llama/llama_model.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "tasks/language_modeling/sampling.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

/// bench_generate [--rows B,B] [--precision P,P] [--prompt N] [--tokens N] [--rounds N] [--hidden H] [--layers L]
/// [--heads A] [--key-value-heads KV] [--feed-forward F] [--vocabulary V] [--json]: generates one token for each of B
/// sequences, as `mylos generate` does, and compares the time with that of reading the weights once at memory
/// bandwidth, measured in turns. The default sizes are those of a model with 125 M parameters. The tokens are first
/// checked against full forward passes.
namespace mylos::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t checked_tokens = 4;

families::LlamaShape shape_of(const Options& options) {
  families::LlamaShape shape{.vocabulary = options.count("vocabulary", 32'000),
                             .hidden = options.count("hidden", 768),
                             .layers = options.count("layers", 12),
                             .heads = options.count("heads", 12),
                             .key_value_heads = options.count("key-value-heads", 4),
                             .feed_forward = options.count("feed-forward", 2048)};
  shape.head_size = shape.hidden / shape.heads;
  return shape;
}

/// A model with random weights.
class Model {
 public:
  Model(const families::LlamaShape& shape, Precision precision)
      : shape_(shape),
        network_(families::make_llama(shape, precision)),
        store_(network_->table(), precision, ParameterStore::Purpose::inference),
        strategy_(parallel::make_single_process_strategy(store_)),
        decoder_(families::make_llama_decoder(shape, precision, network_->table())) {
    constexpr std::size_t period = 65521;  // a prime; drawing each weight would take longer than the timed steps
    std::vector<float> drawn(period);
    for (std::size_t i = 0; i < period; ++i) drawn[i] = 0.05f * static_cast<float>(normal(7, 1, i));
    std::size_t at = 0;
    for (std::size_t row = 0; row < network_->table().tensors().size(); ++row) {
      const ParameterTensor& of = network_->table().tensor(row);
      std::vector<float> values(of.size, 1.0f);
      if (of.shape.size() > 1) std::ranges::generate(values, [&] { return drawn[at++ % period]; });
      strategy_->write_tensor(row, values);
    }
    strategy_->sync_parameters(space_, ChangedUnits::all);
  }

  /// Returns the bytes of the weights that a step reads: all except the embeddings, of which it looks up one row.
  double bytes() const {
    std::size_t elements = 0;
    for (const ParameterTensor& row : network_->table().tensors()) {
      if (row.name != "model.embed_tokens.weight") elements += row.size;
    }
    return static_cast<double>(elements * bytes_of(store_.precision()));
  }

  void begin(const families::DecoderShape& sizes) {
    Arena planned;
    decoder_->plan(planned, sizes);
    arena_ = Arena("mylos::bench::generate", planned.peak());
    decoder_->begin(pass(), sizes);
  }
  /// Returns the likeliest next token of each slot.
  std::vector<std::int32_t> start(std::span<const std::vector<std::int32_t>> prompts) {
    std::vector<std::int32_t> tokens;
    for (std::size_t slot = 0; slot < prompts.size(); ++slot) {
      tokens.push_back(choose(decoder_->prefill(pass(), slot, prompts[slot])).front());
    }
    return tokens;
  }
  std::vector<std::int32_t> step(std::span<const std::size_t> slots, std::span<const std::int32_t> tokens) {
    return choose(decoder_->step(pass(), slots, tokens));
  }
  /// Returns the logits of the last token from a pass over all tokens, in slot 0.
  std::vector<float> full(std::span<const std::int32_t> tokens) {
    const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), decoder_->prefill(pass(), 0, tokens));
    return {host.data(), host.data() + host.size()};
  }

 private:
  nn::Pass pass() { return {space_, gemm_, store_, strategy_->hooks(), arena_}; }
  std::vector<std::int32_t> choose(const ConstMatrix<float>& logits) {
    const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), logits);
    std::vector<std::int32_t> tokens;
    for (std::size_t row = 0; row < host.extent(0); ++row) {
      const auto chosen = sampler_.choose({host.data() + row * host.extent(1), host.extent(1)}, row, 0);
      ensure(chosen.has_value(), "generate: logits are not finite");
      tokens.push_back(chosen->id);
    }
    return tokens;
  }

  families::LlamaShape shape_;
  ExecutionSpace space_;
  Gemm gemm_{default_gemm_provider()};
  std::unique_ptr<nn::Model> network_;
  ParameterStore store_;
  std::unique_ptr<parallel::ShardingStrategy> strategy_;
  std::unique_ptr<families::TextDecoder> decoder_;
  Arena arena_;
  tasks::Sampler sampler_{{}, 0};
};

std::vector<std::vector<std::int32_t>> random_prompts(const families::LlamaShape& shape, std::size_t rows,
                                                      std::size_t length) {
  std::vector<std::vector<std::int32_t>> prompts(rows);
  for (std::size_t i = 0; i < rows * length; ++i) {
    prompts[i / length].push_back(static_cast<std::int32_t>(uniform_below(shape.vocabulary, 3, 0, i)));
  }
  return prompts;
}

std::vector<std::size_t> all_slots(std::size_t rows) {
  std::vector<std::size_t> slots(rows);
  std::iota(slots.begin(), slots.end(), std::size_t{0});
  return slots;
}

/// Checks that the first generated tokens of each sequence are the likeliest ones according to full passes. In 16 bits,
/// passes round differently from steps, so nearly the likeliest tokens are accepted.
void check(Model& model, families::DecoderShape sizes, Precision precision,
           std::span<const std::vector<std::int32_t>> prompts) {
  sizes.longest_prompt = sizes.positions;
  model.begin(sizes);
  std::vector<std::vector<std::int32_t>> texts(prompts.begin(), prompts.end());
  std::vector<std::int32_t> tokens = model.start(prompts);
  for (std::size_t i = 0; i < checked_tokens; ++i) {
    if (i > 0) tokens = model.step(all_slots(prompts.size()), tokens);
    for (std::size_t row = 0; row < prompts.size(); ++row) texts[row].push_back(tokens[row]);
  }
  const float tolerance = precision == Precision::float32 ? 0.0f : 0.05f;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    for (std::size_t length = prompts[row].size(); length < texts[row].size(); ++length) {
      const std::vector<float> logits = model.full(std::span(texts[row]).first(length));
      const float largest = *std::ranges::max_element(logits);
      const float chosen = logits[static_cast<std::size_t>(texts[row][length])];
      ensure(chosen >= largest - tolerance * std::fabs(largest),
             fmt::format("generate: token {} of sequence {} has the logit {}, and the largest of a full pass is {}",
                         length, row, chosen, largest));
    }
  }
}

struct Setting {
  families::LlamaShape shape;
  std::size_t prompt, tokens, rounds;
};

OrderedJson measure(Model& model, app::MemoryBandwidth& memory, const Setting& of, Precision precision,
                    std::size_t rows) {
  const families::DecoderShape sizes{rows, of.prompt + std::max(of.tokens * of.rounds, checked_tokens) + 2, of.prompt};
  const auto prompts = random_prompts(of.shape, rows, of.prompt);
  check(model, sizes, precision, prompts);
  model.begin(sizes);
  const std::vector<std::size_t> slots = all_slots(rows);
  std::vector<std::int32_t> tokens = model.start(prompts);
  tokens = model.step(slots, tokens);
  std::vector<double> seconds, bandwidths, shares;
  for (std::size_t round = 0; round < of.rounds; ++round) {
    bandwidths.push_back(memory.measure());
    const Stopwatch watch;
    for (std::size_t i = 0; i < of.tokens; ++i) tokens = model.step(slots, tokens);
    const double whole = watch.seconds();
    seconds.push_back(whole / static_cast<double>(of.tokens));
    bandwidths.back() = std::max(bandwidths.back(), memory.measure());
    shares.push_back(model.bytes() / bandwidths.back() / seconds.back());
  }
  const double second = median(seconds), bandwidth = median(bandwidths);
  return {{"precision", to_string(precision)},
          {"rows", rows},
          {"weights_bytes", model.bytes()},
          {"bandwidth", bandwidth},
          {"seconds", second},
          {"tokens_per_second", static_cast<double>(rows) / second},
          {"share", median(shares)},
          {"shares", shares}};
}

void print_generation(const OrderedJson& row) {
  const auto [least, most] = std::ranges::minmax(row["shares"].get<std::vector<double>>());
  print(fmt::format(
      "{}/rows={}: {:.4g} ms a step, {:.1f} tokens/s; {:.0f} MB of weights at {:.1f} GB/s take {:.4g} ms: "
      "{:.0f} % ({:.0f} to {:.0f})\n",
      row["precision"].get<std::string>(), row["rows"].get<std::size_t>(), 1e3 * row["seconds"].get<double>(),
      row["tokens_per_second"].get<double>(), 1e-6 * row["weights_bytes"].get<double>(),
      1e-9 * row["bandwidth"].get<double>(), 1e3 * row["weights_bytes"].get<double>() / row["bandwidth"].get<double>(),
      100.0 * row["share"].get<double>(), 100.0 * least, 100.0 * most));
}

void run(int argc, char** argv) {
  const Options options(argc, argv,
                        {"rows", "precision", "prompt", "tokens", "rounds", "hidden", "layers", "heads",
                         "key-value-heads", "feed-forward", "vocabulary"});
  Setting of{shape_of(options), options.count("prompt", 64), options.count("tokens", 20), options.count("rounds", 9)};
  const std::vector<Precision> precisions = options.precisions({Precision::float32});
  const std::vector<std::size_t> counts = options.counts("rows", {1});
  of.shape.positions = of.prompt + std::max(of.tokens * of.rounds, checked_tokens) + 2;
  families::check_shape(of.shape);
  const app::ComputeScope compute;
  app::MemoryBandwidth memory;
  std::vector<OrderedJson> rows;
  for (const Precision precision : precisions) {
    Model model(of.shape, precision);
    for (const std::size_t count : counts) {
      rows.push_back(measure(model, memory, of, precision, count));
      if (!options.json()) print_generation(rows.back());
      flush_output();
    }
  }
  if (options.json()) print(OrderedJson{{"context", app::bench_context()}, {"generation", rows}}.dump(2) + "\n");
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  mylos::restart_with_openblas_kernels(argv);
  return mylos::bench::run_program("bench_generate", [&] { mylos::bench::run(argc, argv); });
}
