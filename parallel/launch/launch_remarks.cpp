#include "parallel/launch/launch_remarks.hpp"

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

/// Returns the name of NCCL's network plugin; empty if none can be loaded.
std::string nccl_plugin(const Environment& environment, const LoadsLibrary& loads) {
  std::vector<std::string> plugins = {"libnccl-net.so", "libnccl-net-ofi.so"};
  if (const char* const named = environment("NCCL_NET_PLUGIN"); named != nullptr) {
    plugins.insert(plugins.begin(), {named, fmt::format("libnccl-net-{}.so", named)});
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
                         const std::filesystem::path& infiniband) {
  constexpr const char* variable = "NCCL_NET";
  if (const char* const named = environment(variable); named != nullptr) {
    return fmt::format("NCCL exchanges between nodes by {}, as {} says", named, variable);
  }
  if (const std::string plugin = nccl_plugin(environment, loads); !plugin.empty()) {
    return fmt::format("NCCL exchanges between nodes by its plugin {}", plugin);
  }
  std::set<std::string> adapters;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(infiniband, unreadable)) {
    adapters.insert(entry.path().filename());
  }
  const char* const disabled = environment("NCCL_IB_DISABLE");
  const bool takes_tcp = adapters.empty() || (disabled != nullptr && std::string_view(disabled) != "0");
  return fmt::format("NCCL exchanges between nodes by {}",
                     takes_tcp ? "TCP" : fmt::format("InfiniBand or RoCE ({})", fmt::join(adapters, ", ")));
}

std::string nccl_over_tcp(const Environment& environment, const LoadsLibrary& loads,
                          const std::filesystem::path& slingshot) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(slingshot, unreadable) || !nccl_plugin(environment, loads).empty()) return {};
  return "NCCL would use TCP between nodes with Slingshot: no libnccl-net*.so can be loaded; load the site's module "
         "for NCCL or for its OFI plugin (nccl, aws-ofi-nccl), or add the plugin's directory to LD_LIBRARY_PATH";
}

}  // namespace mylos::parallel
