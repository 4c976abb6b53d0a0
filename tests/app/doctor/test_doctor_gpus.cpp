#include "tests/app/doctor/doctor_report.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// The checks of GPUs and NCCL, from given facts.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using namespace app;
using testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(DoctorGpus, TellsWhatABuildFinds) {
  EXPECT_THAT(reported(gpu_findings({.is_needed = false})), HasSubstr("none needed"));
  EXPECT_THAT(reported(gpu_findings({.is_needed = false, .driver = "535.1"})),
              HasSubstr("warning  GPU         this node has"));
  EXPECT_THAT(reported(gpu_findings({.is_needed = true, .obstacle = "no GPU is visible here; ask for one"})),
              HasSubstr("error    GPU         no GPU is visible here; ask for one"));
  const GpuFacts two{
      .is_needed = true,
      .devices = {{"A", "id0", nvidia_gpu(80), 40ull << 30}, {"B", "id1", nvidia_gpu(90), 80ull << 30, 1}},
      .driver = "570.86.10",
      .rank_of_node = 3};
  EXPECT_THAT(reported(gpu_findings(two)), HasSubstr("1 of 2: B, compute capability 9.0, 80.00 GiB, driver 570.86.10"));
  EXPECT_EQ(driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\nGCC 12.2"),
            "535.129.03");
  EXPECT_EQ(driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build"),
            "570.86.10");
  EXPECT_EQ(driver_version(""), "");
}

TEST(DoctorGpus, FindsThoseThatABuildForCpusLeaves) {
  GpuFacts facts{.is_needed = false};
  const std::string none = "ok       GPU         none needed: this build computes on CPUs\n0 errors, 0 warnings\n";
  EXPECT_EQ(reported(gpu_findings(facts)), none);
  facts.amd_architectures = {"gfx1103"};
  EXPECT_EQ(reported(gpu_findings(facts)), none) << "part of a CPU, and no preset is for it";
  facts.amd_architectures = {"gfx1103", "gfx90a", "gfx90a"};
  EXPECT_THAT(
      reported(gpu_findings(facts)),
      HasSubstr("warning  GPU         this node has AMD GPUs (2 of gfx90a), but this build computes on CPUs; use a "
                "build for GPUs (-DMYLOS_ENABLE_HIP=ON -DMYLOS_HIP_ARCHITECTURE=90a), or a node without them"));
  facts.driver = "570.86.10";
  EXPECT_THAT(reported(gpu_findings(facts)), HasSubstr("this node has NVIDIA GPUs (driver 570.86.10), but"));
}

TEST(DoctorGpus, ReadsTheArchitecturesThatTheDriverOfAmdLists) {
  const TemporaryDirectory nodes;
  const auto list = [&](const char* node, const std::string& version) {
    fs::create_directory(nodes / node);
    write_file(nodes / node / "properties", "cpu_cores_count 0\ngfx_target_version " + version + "\nunique_id 7\n");
  };
  list("0", "0");
  list("1", "90010");
  list("2", "90402");
  list("3", "110003");
  fs::create_directory(nodes / "4");  // without properties, as of a GPU of another job
  EXPECT_EQ(amd_architectures(nodes.path()), (Words{"gfx90a", "gfx942", "gfx1103"}));
  EXPECT_EQ(amd_architectures(nodes / "none"), Words());
}

TEST(DoctorGpus, FindsRanksOnOneGpu) {
  const Words devices = {"a", "b", "a", "", ""};
  const std::vector<Findings> findings = shared_gpu_findings(devices);
  EXPECT_THAT(report_text(fold({}, findings), 5),
              HasSubstr("error    GPU         ranks 0,2: 2 ranks compute on the same GPU (a)"));
  EXPECT_EQ(findings[1].size() + findings[3].size() + findings[4].size(), 0u);
}

TEST(DoctorGpus, NamesProvidersThatLackTheirLibrary) {
  const std::vector<std::string> providers = {"kokkos-kernels", "cudnn", "cublaslt"};
  const Findings all = provider_findings(providers, [](std::string_view) { return std::string(); });
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].level, Level::ok);
  EXPECT_EQ(all[0].text, "kokkos-kernels, cudnn, cublaslt");
  const Findings some = provider_findings(
      providers, [](std::string_view name) { return std::string(name == "cudnn" ? "cuDNN cannot be loaded" : ""); });
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].text, "kokkos-kernels, cublaslt");
  EXPECT_EQ(some[1].level, Level::warning);
  EXPECT_EQ(some[1].text, "cudnn is not used: cuDNN cannot be loaded");
}

TEST(DoctorNccl, LooksThroughItsVariables) {
  const Words interfaces = {"eth0", "ib0", "lo"}, adapters = {"mlx5_0"};
  const auto found = [&](std::map<std::string, std::string> set) {
    return reported(nccl_environment_findings(variables(std::move(set)), interfaces, adapters));
  };
  EXPECT_EQ(found({}), "0 errors, 0 warnings\n");
  for (const char* list : {"ib", "=ib0", "^lo", "eth1,ib0", ""}) {
    EXPECT_EQ(found({{"NCCL_SOCKET_IFNAME", list}}), "0 errors, 0 warnings\n") << list;
  }
  for (const char* list : {"ib1", "=ib", "hsn", "^eth,ib,lo"}) {
    EXPECT_THAT(found({{"NCCL_SOCKET_IFNAME", list}}),
                HasSubstr("selects no network interface of this node; it has eth0"))
        << list;
  }
  EXPECT_EQ(found({{"NCCL_IB_HCA", "mlx5_0:1"}}), "0 errors, 0 warnings\n");
  EXPECT_THAT(found({{"NCCL_IB_HCA", "mlx4"}}),
              HasSubstr("error    NCCL        NCCL_IB_HCA=mlx4 selects no InfiniBand"));
  EXPECT_THAT(found({{"NCCL_IB_DISABLE", "1"}}), HasSubstr("warning  NCCL        NCCL_IB_DISABLE is set"));
  EXPECT_EQ(found({{"NCCL_IB_DISABLE", "0"}}), "0 errors, 0 warnings\n");
  EXPECT_THAT(found({{"NCCL_P2P_DISABLE", "1"}}), HasSubstr("warning  NCCL"));
  EXPECT_THAT(found({{"NCCL_DEBUG", "INFO"}}), HasSubstr("ok       NCCL        NCCL_DEBUG=INFO"));
}

}  // namespace
}  // namespace mylos::tests
