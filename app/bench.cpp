#include "app/bench/bench.hpp"

#include "app/batch/batch_runs.hpp"
#include "app/options/options.hpp"
#include "app/run_commands.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/launch/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

/// mylos bench: validates, then times.
namespace mylos::app {

namespace {

struct Benchmark {
  std::string_view name;
  int (*run)(const Arguments&);
  bool runs_on_ranks = false;
};
// Not std::to_array: nvcc of CUDA 12.4 does not accept a constexpr array of structs with function pointers from it.
constexpr Benchmark benchmarks[] = {{"gemm", bench_gemm},
                                    {"step", bench_step},
                                    {"batch", bench_batch, true},
                                    {"tokenize", bench_tokenize},
                                    {"collectives", bench_collectives, true}};

/// Refuses options that would have no effect.
void check_options(const Benchmark& benchmark, const Arguments& arguments) {
  check_options_of("bench", benchmark.name, arguments);
  if (benchmark.name == "gemm" && arguments.sources.was_given("model") && arguments.sources.was_given("shapes")) {
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
  check_options(*found, arguments);
  return found->run(arguments);
}

}  // namespace mylos::app
