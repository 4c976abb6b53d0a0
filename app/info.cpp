#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/run_commands.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/device.hpp"
#include "core/kernels/attention/attention_bfloat16.hpp"
#include "core/kernels/products/gemm.hpp"
#include "core/kernels/products/openblas_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

/// mylos info: describes this build and its environment. Does not start Kokkos or MPI.
namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson version_or_null(const std::string& version) {
  return version.empty() ? OrderedJson(nullptr) : OrderedJson(version);
}

/// Returns {"cudnn": "cuDNN cannot be loaded (...); ..."}: the providers of this build that cannot be used here, and
/// why.
OrderedJson missing_providers() {
  OrderedJson missing = OrderedJson::object();
  for (const std::string& name : built_gemm_providers()) {
    if (const std::string obstacle = gemm_provider_obstacle(name); !obstacle.empty()) missing[name] = obstacle;
  }
  return missing;
}

OrderedJson describe_build() {
  const BuildInfo build = build_info();
  OrderedJson info = {{"version", build.version},
                      {"commit", build.commit},
                      {"compiler", build.compiler},
                      {"build_type", build.build_type},
                      {"kokkos", build.kokkos},
                      {"kokkos_backend", ExecutionSpace::name()},
                      {"kokkos_kernels", version_or_null(build.kokkos_kernels)},
                      {"gemm_providers", gemm_providers()},
                      {"onednn", version_or_null(build.onednn)},
                      {"mpi", version_or_null(build.mpi)},
                      {"hdf5", version_or_null(build.hdf5)},
                      {"cpu_features_built", built_cpu_feature_names()},
                      {"cpu_features_present", present_cpu_feature_names()},
                      {"cpus", usable_cpus()},
                      {"threads", default_threads()}};
  if (const std::string kernels = openblas_kernels(); !kernels.empty()) info["openblas_kernels"] = kernels;
  if (runs_on_host) info["attention_bfloat16"] = attention::to_string(attention::bfloat16_operands());
  if (const OrderedJson missing = missing_providers(); !missing.empty()) info["missing_providers"] = missing;
  return info;
}

std::string text_of(const OrderedJson& value) {
  if (value.is_null()) return "not in this build";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) {
    std::string text;
    for (const auto& [name, why] : value.items()) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, why.get<std::string>());
    }
    return text;
  }
  if (!value.is_array()) return value.dump();
  const auto words = value.get<std::vector<std::string>>();
  return words.empty() ? "only those of every CPU of this platform" : fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

int run_info(const Arguments& arguments) {
  const OrderedJson info = describe_build();
  if (arguments.json) {
    print_indented_json(info);
    return 0;
  }
  for (const auto& [key, value] : info.items()) print(fmt::format("{:22}{}\n", key, text_of(value)));
  return 0;
}

}  // namespace mylos::app
