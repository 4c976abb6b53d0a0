#include "train/monitor/gpu_log.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace mylos::train {
namespace {

using tests::read_file;
using tests::write_file;

constexpr const char* header =
    "timestamp, name, utilization.gpu [%], utilization.memory [%], memory.total [MiB], memory.used [MiB]\n";

class GpuLogTest : public testing::Test {
 protected:
  GpuLogTest() { ::tzset(); }
  ~GpuLogTest() override {
    zone_.reset();
    ::tzset();
  }
  static GpuSample sample(double time) {
    return {.time = time,
            .step = 1,
            .gpus = {{.index = 0,
                      .name = "NVIDIA A100-PCIE-40GB",
                      .utilization = 87.0,
                      .memory_utilization = 41.0,
                      .memory = 1234.9 * (1 << 20),
                      .memory_total = 40960.0 * (1 << 20)},
                     {.index = 1, .name = "MIG 1g.5gb"}}};
  }

  std::optional<tests::EnvironmentVariable> zone_{std::in_place, "TZ", "XYZ-2"};
  tests::TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_ / "gpus.csv";
};

TEST_F(GpuLogTest, HasTheColumnsOfNvidiaSmi) {
  GpuLog log(file_, true);
  log.append(sample(1738317600.1234));
  EXPECT_EQ(read_file(file_),
            header + std::string("2025/01/31 12:00:00.123, NVIDIA A100-PCIE-40GB, 87 %, 41 %, 40960 MiB, 1234 MiB\n"
                                 "2025/01/31 12:00:00.123, MIG 1g.5gb, [N/A], [N/A], [N/A], [N/A]\n"));
}

TEST_F(GpuLogTest, AResumedRunAppends) {
  GpuLog(file_, true).append(sample(1.0));
  const std::string first = read_file(file_);
  write_file(file_, first + "2025/01/");  // killed during a write
  GpuLog(file_, true).append(sample(1.0));
  EXPECT_EQ(read_file(file_), first + "2025/01/\n" + first.substr(std::string(header).size()));
}

TEST_F(GpuLogTest, OtherProcessesOfTheNodeWaitForTheHeader) {
  GpuLog other(file_, false);
  other.append(sample(1.0));
  EXPECT_FALSE(std::filesystem::exists(file_));
  const GpuLog first(file_, true);
  other.append(sample(1.0));
  EXPECT_TRUE(read_file(file_).starts_with(header));
  EXPECT_GT(read_file(file_).size(), std::string(header).size());
}

TEST_F(GpuLogTest, AFileOfAnotherKindIsKept) {
  write_file(file_, "step,loss\n1,2\n");
  EXPECT_EQ(tests::error_of([&] { const GpuLog log(file_, true); }),
            file_.string() + R"( exists and does not begin with "timestamp, name, ...")");
  EXPECT_EQ(read_file(file_), "step,loss\n1,2\n");
}

TEST_F(GpuLogTest, EachNodeHasItsFile) {
  EXPECT_EQ(gpu_log_of_node("logs/gpus.v2.csv", "n1.site"), "logs/gpus.v2-n1.site.csv");
  EXPECT_EQ(gpu_log_of_node("gpus", "n1"), "gpus-n1");
}

}  // namespace
}  // namespace mylos::train
