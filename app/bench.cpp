#include "app/bench/bench.hpp"

#include "app/run_commands.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/launch/launcher.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

/// mylos bench: validates, then times.
namespace mylos::app {

namespace {

/// An option of the other benchmark would change nothing in this one.
void refuse(const Arguments& arguments, std::string_view what, std::initializer_list<const char*> others) {
  for (const char* name : others) {
    if (arguments.sources.given.contains(name))
      throw UsageError(fmt::format("bench {} has no --{}; leave it out", what, name));
  }
}

/// Several processes that each time the same machine time each other.
void refuse_launcher(std::string_view what) {
  const std::size_t launched = parallel::launched_ranks(parallel::process_environment);
  if (launched <= 1) return;
  throw UsageError(fmt::format(
      "bench {} runs as one process, and the launcher started {}; start it without the launcher", what, launched));
}

}  // namespace

int run_bench(const Arguments& arguments) {
  const std::string& what = arguments.positional.front();
  if (what != "collectives") refuse_launcher(what);
  if (what == "gemm") {
    refuse(arguments, what,
           {"breakdown", "data", "vocab", "cased", "batch", "micro-batch", "micro-tokens", "recompute", "attention",
            "gemm"});
    if (arguments.sources.given.contains("model") && arguments.sources.given.contains("shapes")) {
      throw UsageError("--model and --shapes exclude each other; leave one of them out");
    }
    return bench_gemm(arguments);
  }
  if (what == "step") {
    refuse(arguments, what, {"shapes", "tokens", "vocab", "cased"});
    return bench_step(arguments);
  }
  if (what == "tokenize") {
    refuse(arguments, what,
           {"breakdown", "shapes", "tokens", "providers", "batch", "micro-batch", "micro-tokens", "recompute",
            "attention", "gemm", "tf32", "precision"});
    return bench_tokenize(arguments);
  }
  if (what == "collectives") {
    refuse(arguments, what,
           {"breakdown", "shapes", "tokens", "providers", "batch", "micro-batch", "micro-tokens", "recompute",
            "attention", "gemm", "tf32", "precision", "model", "data", "vocab", "cased"});
    return bench_collectives(arguments);
  }
  throw UsageError(
      fmt::format("bench {}: expected gemm, step, tokenize or collectives (this version has these)", what));
}

}  // namespace mylos::app
