#include "parallel/communicator/nccl/nccl_version.hpp"

#include <gtest/gtest.h>

namespace mylos::parallel {
namespace {

TEST(NcclVersion, ReadsAsItsName) {
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(21000), "2.10.0");
  EXPECT_EQ(nccl_version_text(2708), "2.7.8");
}

TEST(NcclVersion, ServesABuildForItsMajorOne) {
  EXPECT_EQ(nccl_version_obstacle("libnccl.so.2", 22203, 22809, nccl_names), "");
  EXPECT_EQ(nccl_version_obstacle("libnccl.so.2", 2708, 22809, nccl_names), "");
  EXPECT_EQ(nccl_version_obstacle("libnccl.so.2", 30102, 22809, nccl_names),
            "libnccl.so.2 is NCCL 3.1.2, and this build is for NCCL 2.28.9; load one of that major version "
            "(LD_LIBRARY_PATH), or let device arrays go through MPI with `communicator mpi`");
}

TEST(NcclVersion, IsTheSameOnAllRanks) {
  EXPECT_EQ(nccl_group_obstacle(22809, 22809), "");
  EXPECT_EQ(
      nccl_group_obstacle(22203, 22809, nccl_names),
      "NCCL is 2.22.3 on this rank and 2.28.9 on the first one; give all nodes the same (LD_LIBRARY_PATH), or let "
      "device arrays go through MPI with `communicator mpi`");
}

/// ROCm 5.5 has RCCL 2.15, and ROCm 6.3 has 2.21.5, in files of one name.
TEST(NcclVersion, IsSaidOfRcclByItsName) {
  EXPECT_STREQ(rccl_names.file, "librccl.so.1");
  EXPECT_EQ(nccl_version_obstacle(rccl_names.file, 22105, 22707, rccl_names), "");
  EXPECT_EQ(nccl_version_obstacle(rccl_names.file, 30102, 22105, rccl_names),
            "librccl.so.1 is RCCL 3.1.2, and this build is for RCCL 2.21.5; load one of that major version "
            "(LD_LIBRARY_PATH), or let device arrays go through MPI with `communicator mpi`");
  EXPECT_EQ(
      nccl_group_obstacle(22105, 22707, rccl_names),
      "RCCL is 2.21.5 on this rank and 2.27.7 on the first one; give all nodes the same (LD_LIBRARY_PATH), or let "
      "device arrays go through MPI with `communicator mpi`");
}

}  // namespace
}  // namespace mylos::parallel
