#include "parallel/launch/launch_remarks.hpp"

#include "core/base/options/option_values.hpp"
#include "core/base/process/shared_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace mylos::parallel {
namespace {

/// Returns the command that starts `ranks` ranks on each node, as far as it does not depend on the program.
std::string launch_of(std::size_t ranks, std::size_t nodes, const Environment& environment) {
  const LauncherKind launcher = launcher_kind(environment);
  const bool in_slurm = environment("SLURM_JOB_ID") != nullptr;
  if (launcher == LauncherKind::slurm || (launcher == LauncherKind::none && in_slurm)) {
    return fmt::format("#SBATCH --ntasks-per-node={0} in the job script, and srun --ntasks-per-node={0}", ranks);
  }
  if (launcher == LauncherKind::hydra) return fmt::format("mpiexec -n {} -ppn {}", ranks * nodes, ranks);
  if (launcher == LauncherKind::pals) return fmt::format("mpiexec -n {} --ppn {}", ranks * nodes, ranks);
  return nodes == 1 ? fmt::format("mpirun -n {}", ranks)
                    : fmt::format("mpirun -n {} --map-by ppr:{}:node", ranks * nodes, ranks);
}

constexpr const char* plugin_variable = "NCCL_NET_PLUGIN";

/// Returns the name of the network plugin that NCCL loads; empty if none can be loaded.
std::string nccl_plugin(const NcclNames& nccl, const Environment& environment, const LoadsLibrary& loads) {
  std::vector<std::string> plugins(nccl.plugins.begin(), nccl.plugins.end());
  const char* const named = environment(plugin_variable);
  if (named != nullptr && *named != '\0') {
    plugins.clear();
    for (const std::string& name : split(named, ',')) {
      plugins.insert(plugins.end(), {name, fmt::format("{}-{}.so", nccl.plugin_prefix, name)});
    }
  }
  const auto found = std::ranges::find_if(plugins, loads);
  return found == plugins.end() ? "" : *found;
}

}  // namespace

std::string differing_processors(std::span<const RankPlacement> placements) {
  const auto differs =
      std::ranges::find_if(placements, [&](const RankPlacement& each) { return each.kind != placements.front().kind; });
  if (differs == placements.end()) return {};
  return fmt::format("ranks compute on different kinds of processors: rank 0 on {} ({}), rank {} on {} ({})",
                     placements.front().host, placements.front().kind, differs - placements.begin(), differs->host,
                     differs->kind);
}

std::string unused_devices(std::span<const RankPlacement> placements, const Environment& environment) {
  struct Node {
    std::string host;
    std::set<std::uint64_t> visible;
    std::set<std::string> used;
    std::size_t unused() const { return visible.size() - std::min(visible.size(), used.size()); }
  };
  std::map<std::size_t, Node> nodes;
  for (const RankPlacement& placement : placements) {
    if (placement.device.empty()) return {};
    Node& node = nodes[placement.node];
    node.host = placement.host;
    node.visible.insert(placement.visible_devices.begin(), placement.visible_devices.end());
    node.used.insert(placement.device);
  }
  const auto most = std::ranges::max_element(nodes, {}, [](const auto& numbered) { return numbered.second.unused(); });
  if (most == nodes.end() || most->second.unused() == 0) return {};
  const Node& node = most->second;
  return fmt::format("{} of {} GPUs on {} compute nothing, because a rank uses one; start one rank per GPU: {}",
                     node.unused(), node.visible.size(), node.host,
                     launch_of(node.visible.size(), nodes.size(), environment));
}

bool loads_library(const std::string& name) { return SharedLibrary(name.c_str()).obstacle().empty(); }

std::string nccl_network(const Environment& environment, const LoadsLibrary& loads,
                         const std::filesystem::path& infiniband, const NcclNames& nccl) {
  constexpr const char* variable = "NCCL_NET";
  const auto by = [&](const std::string& network) {
    return fmt::format("{} exchanges between nodes by {}", nccl.name, network);
  };
  if (const char* const named = environment(variable); named != nullptr) {
    return by(fmt::format("{}, as {} says", named, variable));
  }
  if (const std::string plugin = nccl_plugin(nccl, environment, loads); !plugin.empty()) {
    return by("its plugin " + plugin);
  }
  std::set<std::string> adapters;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(infiniband, unreadable)) {
    adapters.insert(entry.path().filename());
  }
  const char* const disabled = environment("NCCL_IB_DISABLE");
  const bool takes_tcp = adapters.empty() || (disabled != nullptr && std::string_view(disabled) != "0");
  return by(takes_tcp ? "TCP" : fmt::format("InfiniBand or RoCE ({})", fmt::join(adapters, ", ")));
}

std::string nccl_over_tcp(const Environment& environment, const LoadsLibrary& loads,
                          const std::filesystem::path& slingshot, const NcclNames& nccl) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(slingshot, unreadable) || !nccl_plugin(nccl, environment, loads).empty()) {
    return {};
  }
  return fmt::format(
      "{0} would use TCP between nodes with Slingshot: {1}*.so cannot be loaded; load the site's module for {0} or for "
      "its OFI plugin ({2}), add the plugin's directory to LD_LIBRARY_PATH, or name the file in {3}",
      nccl.name, nccl.plugin_prefix, nccl.modules, plugin_variable);
}

}  // namespace mylos::parallel
