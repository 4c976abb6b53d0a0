#include "app/bench/bench.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/device.hpp"
#include "core/kernels/products/gemm.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mylos::app {

nlohmann::ordered_json bench_context(std::size_t threads) {
  const BuildInfo build = build_info();
  return {{"version", build.version},       {"commit", build.commit},           {"compiler", build.compiler},
          {"build_type", build.build_type}, {"device", ExecutionSpace::name()}, {"threads", threads}};
}

void print_bench_context(std::size_t threads) {
  const BuildInfo build = build_info();
  print(fmt::format("mylos {} ({}, {}, {}), {} threads on {}\n", build.version, build.commit, build.compiler,
                    build.build_type, threads, ExecutionSpace::name()));
}

std::vector<std::string> timed_providers(const Arguments& arguments) {
  std::vector<std::string> providers =
      arguments.bench->providers.empty() ? exact_gemm_providers() : arguments.bench->providers;
  if (arguments.run.engine.gemm.tf32) providers.push_back(tf32_gemm_provider());
  return providers;
}

}  // namespace mylos::app
