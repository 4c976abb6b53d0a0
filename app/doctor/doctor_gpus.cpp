#include "app/doctor/doctor_checks.hpp"

#include "core/base/options/option_values.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "core/kernels/gpu/device_obstacle.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/launch/launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>

namespace mylos::app {
namespace {

/// AMD's architectures for which there are presets. The driver also lists GPUs that are part of a CPU.
constexpr std::array<std::string_view, 2> served_amd_architectures = {"gfx90a", "gfx942"};

bool is_on(const parallel::Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

/// Returns whether a list of NCCL selects one of `names`. "ib0,eth" holds prefixes, "=ib0" a whole name, and "^lo"
/// excludes names. Adapters may include a port ("mlx5_0:1").
bool selects_some(std::string_view list, std::span<const std::string> names) {
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const bool is_whole = list.starts_with('=');
  if (is_whole) list.remove_prefix(1);
  const std::vector<std::string> words = split(list, ',');
  return std::ranges::any_of(names, [&](const std::string& name) {
    const bool is_named = std::ranges::any_of(words, [&](const std::string& word) {
      const std::string wanted = word.substr(0, word.find(':'));
      return is_whole ? name == wanted : !wanted.empty() && name.starts_with(wanted);
    });
    return is_named != excludes;
  });
}

void check_names(const parallel::Environment& environment, const char* variable, std::span<const std::string> names,
                 const char* what, Findings& findings) {
  const char* const list = environment(variable);
  if (list == nullptr || *list == '\0' || selects_some(list, names)) return;
  findings.push_back({Level::error, "NCCL",
                      fmt::format("{}={} selects no {} of this node", variable, printable(list), what),
                      fmt::format("it has {}; unset the variable, or name one of them",
                                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))});
}

/// Reports GPUs that another build would compute on.
Findings unused_gpu_findings(const GpuFacts& facts) {
  std::string gpus, option;
  const auto served = std::ranges::find_first_of(facts.amd_architectures, served_amd_architectures);
  if (!facts.driver.empty()) {
    gpus = fmt::format("NVIDIA GPUs (driver {})", facts.driver);
    option = "-DMYLOS_ENABLE_CUDA=ON";
  } else if (served != facts.amd_architectures.end()) {
    gpus = fmt::format("AMD GPUs ({} of {})", std::ranges::count(facts.amd_architectures, *served), *served);
    option = fmt::format("-DMYLOS_ENABLE_HIP=ON -DMYLOS_HIP_ARCHITECTURE={}", served->substr(3));
  } else {
    return {{Level::ok, "GPU", "none needed: this build computes on CPUs"}};
  }
  return {{Level::warning, "GPU", fmt::format("this node has {}, but this build computes on CPUs", gpus),
           fmt::format("use a build for GPUs ({}), or a node without them", option)}};
}

}  // namespace

GpuFacts gpu_facts(std::size_t rank_of_node) {
  GpuFacts facts{.rank_of_node = rank_of_node};
  std::ifstream file("/proc/driver/nvidia/version");
  facts.driver = driver_version({std::istreambuf_iterator<char>(file), {}});
  facts.amd_architectures = amd_architectures();
  try {
    facts.devices = usable_devices();
  } catch (const std::exception& error) {
    facts.obstacle = error.what();
  }
  return facts;
}

const DeviceInfo* own_device(const GpuFacts& facts) {
  return facts.devices.empty() ? nullptr : &parallel::device_of_rank(facts.devices, facts.rank_of_node);
}

Findings gpu_findings(const GpuFacts& facts) {
  if (!facts.is_needed) return unused_gpu_findings(facts);
  if (!facts.obstacle.empty()) {
    const std::size_t semicolon = std::min(facts.obstacle.rfind("; "), facts.obstacle.size());
    return {{Level::error, "GPU", facts.obstacle.substr(0, semicolon),
             facts.obstacle.substr(std::min(semicolon + 2, facts.obstacle.size()))}};
  }
  const DeviceInfo& device = *own_device(facts);
  const std::string driver = facts.driver.empty() ? "" : fmt::format(", driver {}", facts.driver);
  return {{Level::ok, "GPU",
           fmt::format("{} of {}: {}, {}, {}{}", device.index, facts.devices.size(), device.name,
                       to_string(device.architecture), bytes_text(device.memory), driver)}};
}

std::vector<Findings> shared_gpu_findings(std::span<const std::string> devices) {
  std::map<std::string, std::size_t> takers;
  for (const std::string& device : devices) ++takers[device];
  std::vector<Findings> findings(devices.size());
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const std::size_t others = takers[devices[rank]];
    if (devices[rank].empty() || others < 2) continue;
    findings[rank].push_back(
        {Level::error, "GPU", fmt::format("{} compute on the same GPU ({})", count_of(others, "rank"), devices[rank]),
         "start one rank per GPU (--ntasks-per-node equal to --gpus-per-node), or let them share it with "
         "--communicator "
         "mpi"});
  }
  return findings;
}

Findings provider_findings(std::span<const std::string> providers,
                           const std::function<std::string(std::string_view)>& obstacle) {
  Findings findings;
  std::vector<std::string> usable;
  for (const std::string& name : providers) {
    const std::string why = obstacle(name);
    if (why.empty()) {
      usable.push_back(name);
    } else {
      findings.push_back({Level::warning, "providers", fmt::format("{} is not used: {}", name, why)});
    }
  }
  findings.insert(findings.begin(), {Level::ok, "providers", fmt::format("{}", fmt::join(usable, ", "))});
  return findings;
}

Findings nccl_findings() {
  if (runs_on_host) return {};
  if (!parallel::has_nccl()) {
    return {{Level::warning, "NCCL", "this build has no NCCL, so arrays on GPUs are exchanged through MPI",
             "build with -DMYLOS_ENABLE_NCCL=ON"}};
  }
  try {
    return {{Level::ok, "NCCL", parallel::found_nccl_version()}};
  } catch (const std::exception& error) {
    return {{Level::error, "NCCL", error.what()}};
  }
}

Findings nccl_environment_findings(const parallel::Environment& environment, std::span<const std::string> interfaces,
                                   std::span<const std::string> adapters) {
  Findings findings;
  check_names(environment, "NCCL_SOCKET_IFNAME", interfaces, "network interface", findings);
  if (!is_on(environment, "NCCL_IB_DISABLE")) {
    check_names(environment, "NCCL_IB_HCA", adapters, "InfiniBand adapter", findings);
  } else if (!adapters.empty()) {
    findings.push_back({Level::warning, "NCCL",
                        "NCCL_IB_DISABLE is set: nodes communicate over TCP instead of InfiniBand",
                        "unset it, unless it was set for a reason"});
  }
  for (const auto& [name, what] :
       {std::pair("NCCL_P2P_DISABLE", "GPUs of a node communicate through host memory instead of NVLink"),
        std::pair("NCCL_SHM_DISABLE", "ranks of a node communicate through the network"),
        std::pair("NCCL_NET_GDR_DISABLE", "network transfers go through host memory")}) {
    if (!is_on(environment, name)) continue;
    findings.push_back(
        {Level::warning, "NCCL", fmt::format("{} is set: {}", name, what), "unset it, unless it was set for a reason"});
  }
  const char* const debug = environment("NCCL_DEBUG");
  if (debug != nullptr && (std::string_view(debug) == "INFO" || std::string_view(debug) == "TRACE")) {
    findings.push_back({Level::ok, "NCCL", fmt::format("NCCL_DEBUG={}: NCCL writes to every rank's output", debug)});
  }
  return findings;
}

std::vector<std::string> names_below(const char* folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> amd_architectures(const std::filesystem::path& nodes) {
  std::vector<std::string> found;
  for (const std::string& node : names_below(nodes.c_str())) {
    std::ifstream properties(nodes / node / "properties");
    std::string name;
    for (std::size_t value = 0; properties >> name >> value;) {  // 90010 is 9.0.10: gfx90a. CPUs have 0
      if (name != "gfx_target_version" || value == 0) continue;
      found.push_back(fmt::format("gfx{}{:x}{:x}", value / 10'000, value / 100 % 100, value % 100));
    }
  }
  return found;
}

std::string driver_version(const std::string& text) {
  // The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 ...", or "... Open Kernel
  // Module for x86_64  570.86.10  Release Build".
  std::istringstream words(text.substr(0, text.find('\n')));
  for (std::string word; words >> word;) {
    const bool is_number = std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return {};
}

}  // namespace mylos::app
