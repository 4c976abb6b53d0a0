#include "core/base/process/control_group.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

namespace mylos {
namespace {

using tests::TemporaryDirectory;
using tests::write_file;

TEST(ControlGroup, HasAQuotaInEitherVersion) {
  const TemporaryDirectory group;
  EXPECT_EQ(processor_quota_of(group.path()), std::nullopt);
  write_file(group / "cpu.max", "150000 100000\n");
  EXPECT_EQ(processor_quota_of(group.path()), 1.5);
  write_file(group / "cpu.max", "max 100000\n");
  EXPECT_EQ(processor_quota_of(group.path()), std::nullopt);
  write_file(group / "cpu.cfs_period_us", "100000\n");
  write_file(group / "cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(processor_quota_of(group.path()), std::nullopt);
  write_file(group / "cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(processor_quota_of(group.path()), 4.0);
}

TEST(ControlGroup, ComesBeforeThoseAboveIt) {
  const auto groups = control_groups("/sys/fs/cgroup", "");
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(groups.back(), "/sys/fs/cgroup");
  for (std::size_t i = 1; i < groups.size(); ++i) EXPECT_EQ(groups[i], groups[i - 1].parent_path());
}

}  // namespace
}  // namespace mylos
