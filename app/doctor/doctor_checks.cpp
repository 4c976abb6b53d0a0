#include "app/doctor/doctor_checks.hpp"

#include "app/program/build_info.hpp"
#include "core/base/process/threads.hpp"
#include "core/kernels/products/gemm.hpp"
#include "parallel/launch/launch_remarks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <utility>

namespace mylos::app {
namespace {

std::filesystem::path find_directory(LimitedChecks& checks, const std::filesystem::path& output, Findings& findings) {
  const std::filesystem::path wanted = output.empty() ? "." : output;
  const auto target = std::make_shared<OutputTarget>();
  const bool is_found = checks.run(findings, "output", "looking for " + wanted.string(), 0.25, [target, wanted] {
    *target = find_output(wanted);
    return target->findings;
  });
  return is_found ? target->directory : std::filesystem::path();
}

Findings node_findings(std::size_t ranks_of_node) {
  Findings findings = memory_findings(memory_facts(ranks_of_node));
  append(findings, nccl_findings());
  if (!runs_on_host) {
    append(findings, provider_findings(built_gemm_providers(), gemm_provider_obstacle));
    append(findings, nccl_environment_findings(parallel::process_environment, names_below("/sys/class/net"),
                                               names_below("/sys/class/infiniband")));
    const std::string over_tcp = parallel::nccl_over_tcp(parallel::process_environment);
    if (!over_tcp.empty()) findings.push_back({Level::warning, "NCCL", over_tcp});
  }
  return findings;
}

}  // namespace

bool LimitedChecks::run(Findings& found, const char* name, const std::string& what, double fraction,
                        std::function<Findings()> check) {
  const auto promise = std::make_shared<std::promise<Findings>>();
  std::future<Findings> result = promise->get_future();
  start_thread([promise, name = std::string(name), check = std::move(check)] {
    try {
      promise->set_value(check());
    } catch (const std::exception& error) {
      promise->set_value({{Level::error, name, error.what()}});
    }
  }).detach();
  const double seconds = fraction * limit_;
  const bool has_come_back = result.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  if (has_come_back) {
    append(found, result.get());
  } else {
    has_left_threads_ = true;
    found.push_back({Level::error, name, fmt::format("{} did not finish within {:.3g} s", what, seconds),
                     "a server or a device does not respond: ask the site, or use another node"});
  }
  return has_come_back;
}

std::filesystem::path check_environment(LimitedChecks& checks, const std::filesystem::path& output,
                                        const std::string& model, Findings& findings) {
  const BuildInfo build = build_info();
  findings.push_back(
      {Level::ok, "program", fmt::format("mylos {} ({}), {}", build.version, build.commit, build.compiler)});
  append(findings, instruction_findings(built_cpu_feature_names(), present_cpu_feature_names()));
  append(findings, openblas_findings(openblas_choice()));
  append(findings, limit_findings(system_limit, !names_below("/sys/class/infiniband").empty()));
  append(findings, hdf5_findings(build.hdf5, build.hdf5_is_parallel));
  std::vector<std::string> variables;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) variables.emplace_back(*each);
  append(findings, environment_findings(variables));
  const std::filesystem::path directory = find_directory(checks, output, findings);
  checks.run(findings, "cache", "looking at the cache", 0.25, cache_findings);
  checks.run(findings, "model", "looking for " + model, 0.25, [model] { return model_findings(model); });
  return directory;
}

RankReport check_rank(LimitedChecks& checks, const NodePosition& position, const std::string& host, Findings findings) {
  const auto gpus = std::make_shared<GpuFacts>(GpuFacts{.rank_of_node = position.rank_of_node});
  const bool has_gpu_facts = checks.run(findings, "GPU", "asking for GPUs", 0.25, [gpus] {
    *gpus = gpu_facts(gpus->rank_of_node);
    return gpu_findings(*gpus);
  });
  append(findings, node_findings(position.ranks_of_node));
  if (position.rank_of_node == 0) {
    NodeLoad load = node_load(std::array{static_cast<long>(::getpid())});
    load.others -= std::min(load.others, position.ranks_of_node - 1);  // they wait for this rank, and may spin
    append(findings, load_findings(load));
  }
  const BuildInfo build = build_info();
  const DeviceInfo* const device = has_gpu_facts ? own_device(*gpus) : nullptr;
  return {std::move(findings), processor_facts(host), device == nullptr ? "" : device->id,
          fmt::format("{} {} {}", build.version, build.commit, build.compiler)};
}

}  // namespace mylos::app
