#include "app/bench/bench.hpp"

#include "app/batch/bench_batch.hpp"
#include "app/run_commands.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/launch/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

/// mylos bench: validates, then times.
namespace mylos::app {

namespace {

/// Sets of benchmarks, as bits.
enum BenchmarkBit : unsigned { of_gemm = 1, of_step = 2, of_batch = 4, of_tokenize = 8, of_collectives = 16 };

/// An option and the benchmarks that have it.
struct OptionOfBenchmarks {
  const char* option;
  unsigned benchmarks;  ///< bits of BenchmarkBit
};
constexpr std::array options_of_benchmarks = std::to_array<OptionOfBenchmarks>({
    {"breakdown", of_step},
    {"shapes", of_gemm},
    {"tokens", of_gemm},
    {"providers", of_gemm | of_step},
    {"batch", of_step | of_batch},
    {"micro-batch", of_step},
    {"micro-tokens", of_step},
    {"recompute", of_step | of_batch},
    {"attention", of_step | of_batch},
    {"gemm", of_step | of_batch},
    {"tf32", of_gemm | of_step | of_batch},
    {"precision", of_gemm | of_step | of_batch},
    {"model", of_gemm | of_step | of_batch | of_tokenize},
    {"data", of_step | of_batch | of_tokenize},
    {"vocab", of_tokenize},
    {"cased", of_tokenize},
    {"modes", of_batch},
    {"no-fsdp", of_batch},
    {"plan", of_batch},
    {"gpu", of_batch},
    {"gpus", of_batch},
    {"nodes", of_batch},
    {"threads", of_batch},
    {"memory", of_batch},
    {"network-bandwidth", of_batch},
    {"link-bandwidth", of_batch},
    {"bench", of_batch},
});

struct Benchmark {
  std::string_view name;
  BenchmarkBit bit;
  int (*run)(const Arguments&);
  bool runs_on_ranks = false;
};
// Not std::to_array: nvcc of CUDA 12.4 does not accept a constexpr array of structs with function pointers from it.
constexpr Benchmark benchmarks[] = {{"gemm", of_gemm, bench_gemm},
                                    {"step", of_step, bench_step},
                                    {"batch", of_batch, bench_batch, true},
                                    {"tokenize", of_tokenize, bench_tokenize},
                                    {"collectives", of_collectives, bench_collectives, true}};

/// Refuses options that only other benchmarks have, because they would have no effect.
void check_options_of(const Benchmark& benchmark, const Arguments& arguments) {
  for (const auto& [option, having] : options_of_benchmarks) {
    if (!arguments.sources.was_given(option) || (having & benchmark.bit) != 0) continue;
    throw UsageError(fmt::format("bench {} has no --{}; leave it out", benchmark.name, option));
  }
  if (benchmark.bit == of_gemm && arguments.sources.was_given("model") && arguments.sources.was_given("shapes")) {
    throw UsageError("--model and --shapes exclude each other; leave one of them out");
  }
}

/// Refuses a launcher: several processes that each time the same machine would disturb each other.
void refuse_launcher(std::string_view what) {
  const std::size_t launched = parallel::launched_ranks(parallel::process_environment);
  if (launched <= 1) return;
  throw UsageError(fmt::format(
      "bench {} runs as one process, but the launcher started {}; start it without the launcher", what, launched));
}

}  // namespace

int run_bench(const Arguments& arguments) {
  const std::string& what = arguments.positional.front();
  const auto found = std::ranges::find(benchmarks, what, &Benchmark::name);
  if (found == std::end(benchmarks)) {
    throw UsageError(
        fmt::format("bench {}: expected gemm, step, batch, tokenize or collectives (this version has these)", what));
  }
  if (!found->runs_on_ranks) refuse_launcher(what);
  check_options_of(*found, arguments);
  return found->run(arguments);
}

}  // namespace mylos::app
