#include "parallel/launch/launch_remarks.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

namespace mylos::parallel {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

/// Placements of ranks on nodes of `visible` GPUs each, which every rank of the node sees.
std::vector<RankPlacement> on_gpus(std::size_t nodes, std::size_t ranks_of_node, std::size_t visible) {
  std::vector<RankPlacement> placements;
  for (std::size_t node = 0; node < nodes; ++node) {
    for (std::size_t rank = 0; rank < ranks_of_node; ++rank) {
      RankPlacement& placement = placements.emplace_back();
      placement.host = "n" + std::to_string(node);
      placement.node = node;
      placement.device = "gpu " + std::to_string(node * visible + rank % visible);
      for (std::size_t i = 0; i < visible; ++i) placement.visible_devices.push_back(node * visible + i);
    }
  }
  return placements;
}

std::string remark(const std::vector<RankPlacement>& placements,
                   const std::map<std::string, std::string>& variables = {}) {
  return unused_devices(placements, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// A job of PyTorch's scripts: --ntasks=1 --gres=gpu:4.
TEST(UnusedDevices, OneRankOfAJobWithFourIsTold) {
  const char* text = "3 of 4 GPUs on n0 compute nothing, because a rank uses one; start one rank per GPU: ";
  const std::string in_slurm = std::string(text) +
                               "#SBATCH --ntasks-per-node=4 in the job script, and srun "
                               "--ntasks-per-node=4";
  EXPECT_EQ(remark(on_gpus(1, 1, 4)), std::string(text) + "mpirun -n 4");
  EXPECT_EQ(remark(on_gpus(1, 1, 4), {{"SLURM_JOB_ID", "7"}}), in_slurm);
  EXPECT_EQ(remark(on_gpus(1, 1, 4), {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_NUM_TASKS", "1"}}), in_slurm);
}

TEST(UnusedDevices, TheCommandIsThatOfTheLauncherInUse) {
  const std::vector<RankPlacement> placements = on_gpus(2, 3, 4);
  EXPECT_THAT(remark(placements, {{"OMPI_COMM_WORLD_SIZE", "6"}}), EndsWith("mpirun -n 8 --map-by ppr:4:node"));
  EXPECT_THAT(remark(placements, {{"HYDI_CONTROL_FD", "3"}}), EndsWith("mpiexec -n 8 -ppn 4"));
  EXPECT_THAT(remark(placements, {{"PALS_RANKID", "0"}}), EndsWith("mpiexec -n 8 --ppn 4"));
}

TEST(UnusedDevices, NothingIsSaidIfAllAreUsedOrThereAreNone) {
  EXPECT_EQ(remark(on_gpus(2, 4, 4)), "");
  EXPECT_EQ(remark(on_gpus(1, 8, 4)), "") << "ranks that share GPUs";
  EXPECT_EQ(remark(std::vector<RankPlacement>(2)), "") << "a host build";
}

TEST(UnusedDevices, RanksThatSeeDifferentOnesAreCountedTogether) {
  std::vector<RankPlacement> placements = on_gpus(1, 2, 4);
  placements[0].visible_devices = {0};
  placements[1].visible_devices = {1};
  EXPECT_EQ(remark(placements), "") << "each rank is bound to its own";
  placements[1].visible_devices = {1, 2};
  EXPECT_THAT(remark(placements), StartsWith("1 of 3 GPUs on n0"));
}

TEST(DifferingProcessors, TwoRanksAreNamed) {
  std::vector<RankPlacement> placements = on_gpus(3, 1, 1);
  for (RankPlacement& placement : placements) placement.kind = "avx2";
  EXPECT_EQ(differing_processors(placements), "");
  placements[2].kind = "avx2 avx512f";
  EXPECT_EQ(differing_processors(placements),
            "ranks compute on different kinds of processors: rank 0 on n0 (avx2), rank 2 on n2 (avx2 avx512f)");
}

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

/// Only `library` can be loaded.
LoadsLibrary loads_only(const std::string& library) {
  return [library](const std::string& name) { return name == library; };
}

TEST(NcclNetwork, IsThePluginThenTheAdaptersThenTcp) {
  const tests::TemporaryDirectory adapters;
  const auto network = [&](const std::string& library, const Variables& variables = {}) {
    return nccl_network(environment_of(variables), loads_only(library), adapters.path());
  };
  EXPECT_EQ(network(""), "NCCL exchanges between nodes by TCP");
  for (const char* const adapter : {"mlx5_1", "mlx5_0"}) tests::write_file(adapters / adapter, "");
  EXPECT_EQ(network(""), "NCCL exchanges between nodes by InfiniBand or RoCE (mlx5_0, mlx5_1)");
  EXPECT_EQ(network("", {{"NCCL_IB_DISABLE", "1"}}), "NCCL exchanges between nodes by TCP");
  EXPECT_EQ(network("libnccl-net.so"), "NCCL exchanges between nodes by its plugin libnccl-net.so");
  EXPECT_EQ(network("libnccl-net-site.so", {{"NCCL_NET_PLUGIN", "site"}}),
            "NCCL exchanges between nodes by its plugin libnccl-net-site.so");
  EXPECT_EQ(network("", {{"NCCL_NET", "Socket"}}), "NCCL exchanges between nodes by Socket, as NCCL_NET says");
}

TEST(NcclNetwork, HasTheNamesOfTheLibrary) {
  const auto network = [](const std::string& library, const Variables& variables = {}) {
    return nccl_network(environment_of(variables), loads_only(library), "/none", rccl_names);
  };
  EXPECT_EQ(network("librccl-net-site.so", {{"NCCL_NET_PLUGIN", "other,site"}}),
            "RCCL exchanges between nodes by its plugin librccl-net-site.so");
  EXPECT_EQ(network("libnccl-net-site.so", {{"NCCL_NET_PLUGIN", "site"}}), "RCCL exchanges between nodes by TCP");
}

class NcclOverTcp : public testing::Test {
 protected:
  /// Returns the line on a node where only `library` can be loaded.
  std::string remark(const std::string& library, const Variables& variables = {},
                     const NcclNames& nccl = nccl_names) const {
    return nccl_over_tcp(environment_of(variables), loads_only(library), slingshot_.path(), nccl);
  }

  const tests::TemporaryDirectory slingshot_;
};

TEST_F(NcclOverTcp, IsToldIfNoPluginLoads) {
  EXPECT_THAT(remark("libnccl.so.2"),
              StartsWith("NCCL would use TCP between nodes with Slingshot: libnccl-net*.so cannot be loaded"));
  for (const char* const plugin : {"libnccl-net.so", "libnccl-net-ofi.so"}) EXPECT_EQ(remark(plugin), "") << plugin;
  EXPECT_EQ(remark("libnccl-net-site.so", {{"NCCL_NET_PLUGIN", "site"}}), "");
  EXPECT_EQ(remark("/opt/plugin.so", {{"NCCL_NET_PLUGIN", "/opt/plugin.so"}}), "");
  EXPECT_NE(remark("libnccl-net.so", {{"NCCL_NET_PLUGIN", "site"}}), "") << "NCCL looks only for the named plugin";
  EXPECT_EQ(remark("libnccl-net.so", {{"NCCL_NET_PLUGIN", ""}}), "");
}

TEST_F(NcclOverTcp, IsToldOfRcclIfItsOwnPluginDoesNotLoad) {
  for (const char* const plugin : {"librccl-net.so", "libnccl-net.so"}) {
    EXPECT_EQ(remark(plugin, {}, rccl_names), "") << plugin;
  }
  EXPECT_EQ(remark("librccl-net.so", {{"NCCL_NET_PLUGIN", "librccl-net.so"}}, rccl_names), "");
  EXPECT_EQ(remark("librccl-net.so"), remark("")) << "which NCCL does not load";
  EXPECT_EQ(remark("librccl.so.1", {}, rccl_names),
            "RCCL would use TCP between nodes with Slingshot: librccl-net*.so cannot be loaded; load the site's module "
            "for RCCL or for its OFI plugin (aws-ofi-rccl, rccl-net-plugin), add the plugin's directory to "
            "LD_LIBRARY_PATH, or name the file in NCCL_NET_PLUGIN");
}

TEST_F(NcclOverTcp, IsNotToldWithoutSlingshot) {
  EXPECT_EQ(
      nccl_over_tcp([](const char*) { return nullptr; }, [](const std::string&) { return false; }, slingshot_ / "none"),
      "");
}

}  // namespace
}  // namespace mylos::parallel
