#include "train/monitor/node_meter.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

/// Reads made-up trees of /proc and /sys.
namespace mylos::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Seconds = NodeMeter::Seconds;

class NodeMeterTest : public testing::Test {
 protected:
  NodeMeterTest() {
    write_stat(100, 900);
    write("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n");
  }
  void write(const std::string& file, const std::string& text) const { tests::write_file(root_ / file, text); }
  /// Writes processor times: `busy` as user, and `idle` half as idle, half as waits for disks.
  void write_stat(int busy, int idle) const {
    write("proc/stat", "cpu  " + std::to_string(busy) + " 0 0 " + std::to_string(idle / 2) + " " +
                           std::to_string(idle / 2) + " 0 0 0 77 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
  }
  void write_rapl(const std::string& zone, const std::string& name, const std::string& microjoules) const {
    const std::string directory = "sys/class/powercap/intel-rapl:" + zone + "/";
    write(directory + "name", name + "\n");
    write(directory + "max_energy_range_uj", "262143328850\n");
    write(directory + "energy_uj", microjoules + "\n");
  }
  void write_meter(const std::string& directory, const std::string& chip, const std::string& part,
                   const std::string& microwatts) const {
    write("sys/class/hwmon/" + directory + "/name", chip + "\n");
    write("sys/class/hwmon/" + directory + "/power1_oem_info", part + "\n");
    write("sys/class/hwmon/" + directory + "/power1_average", microwatts + "\n");
  }
  NodeReading read_once() const { return NodeMeter(root_.path()).read(Seconds(1)); }

  tests::TemporaryDirectory root_;
  tests::EnvironmentVariable outside_of_slurm_{"SLURMD_NODENAME", std::nullopt};
};

TEST_F(NodeMeterTest, CpuIsTheBusyPartOfTheTimeBetweenReadings) {
  NodeMeter meter(root_.path());
  EXPECT_EQ(meter.read(Seconds(10)).cpu, std::nullopt) << "nothing to compare with";
  write_stat(130, 970);
  EXPECT_EQ(meter.read(Seconds(10.05)).cpu, std::nullopt) << "too soon";
  EXPECT_EQ(meter.read(Seconds(15)).cpu, 30.0);
  EXPECT_EQ(meter.read(Seconds(20)).cpu, std::nullopt) << "a clock that stands still";
  write_stat(130, 1070);
  EXPECT_EQ(meter.read(Seconds(25)).cpu, 0.0);
}

TEST_F(NodeMeterTest, MemoryIsWhatIsNotAvailable) {
  const NodeReading reading = read_once();
  EXPECT_EQ(reading.memory, 400.0 * 1024);
  EXPECT_EQ(reading.memory_total, 1000.0 * 1024);
}

TEST_F(NodeMeterTest, OfThisMachineItReadsCpuAndMemory) {
  NodeMeter meter;
  meter.read(Seconds(0));
  for (double now = 1; now < 500; ++now) {
    const NodeReading reading = meter.read(Seconds(now));
    ASSERT_GT(reading.memory.value(), 0.0);
    ASSERT_LT(reading.memory.value(), reading.memory_total.value());
    if (reading.cpu) return;
    ::usleep(10'000);
  }
  ADD_FAILURE() << "no CPU utilization in 5 s";
}

TEST_F(NodeMeterTest, CraysCountersComeFirst) {
  write("sys/cray/pm_counters/power", "346 W 1700000000000000 us\n");
  write_meter("hwmon0", "power_meter", "", "200000000");
  const NodeReading reading = read_once();
  EXPECT_EQ(reading.power, 346.0);
  EXPECT_EQ(reading.power_source, "Cray");
  EXPECT_THAT(NodeMeter(root_.path()).obstacles(), IsEmpty());
}

TEST_F(NodeMeterTest, RaplCountsPackagesAndMemoryOnce) {
  const auto write_energies = [this](int joules) {
    const std::string energy = std::to_string(joules) + "000000";
    for (const char* zone : {"0", "1"}) write_rapl(zone, std::string("package-") + zone, energy);
    write_rapl("0:0", "core", energy);
    write_rapl("0:1", "dram", energy);
    write_rapl("2", "psys", energy);
  };
  write_energies(1000);
  NodeMeter meter(root_.path());
  EXPECT_EQ(meter.read(Seconds(10)).power, std::nullopt) << "nothing to compare with";
  write_energies(2000);
  EXPECT_EQ(meter.read(Seconds(10.05)).power, std::nullopt) << "too soon";
  const NodeReading reading = meter.read(Seconds(20));
  EXPECT_EQ(reading.power, 3 * 100.0);
  EXPECT_EQ(reading.power_source, "RAPL");
}

TEST_F(NodeMeterTest, RaplsCounterWraps) {
  write_rapl("0", "package-0", "262143328850");
  NodeMeter meter(root_.path());
  meter.read(Seconds(0));
  write_rapl("0", "package-0", "500000000");
  EXPECT_DOUBLE_EQ(meter.read(Seconds(5)).power.value(), 100.0);
}

TEST_F(NodeMeterTest, RaplThatStopsIsAbsentAndNotZero) {
  write_rapl("0", "package-0", "1000000");
  NodeMeter meter(root_.path());
  meter.read(Seconds(0));
  EXPECT_EQ(meter.read(Seconds(5)).power, std::nullopt) << "the counter stands still";
  std::filesystem::remove(root_ / "sys/class/powercap/intel-rapl:0/energy_uj");
  EXPECT_EQ(meter.read(Seconds(10)).power, std::nullopt);
  write_rapl("0", "package-0", "500000000");
  EXPECT_EQ(meter.read(Seconds(15)).power, std::nullopt) << "the energy before it is not known";
}

TEST_F(NodeMeterTest, RaplThatOnlyRootMayReadIsNamed) {
  write_rapl("0", "package-0", "1000000");
  const std::filesystem::path energy = root_ / "sys/class/powercap/intel-rapl:0/energy_uj";
  std::filesystem::permissions(energy, std::filesystem::perms{0400});
  std::filesystem::permissions(root_.path(), std::filesystem::perms{0755});
  const bool root = ::geteuid() == 0;
  if (!root) std::filesystem::permissions(energy, std::filesystem::perms{0});
  ASSERT_EQ(::seteuid(root ? 65534 : ::geteuid()), 0);
  NodeMeter meter(root_.path());
  const NodeReading reading = meter.read(Seconds(1));
  ASSERT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
  EXPECT_THAT(meter.obstacles(), ElementsAre(AllOf(HasSubstr("power of {nodes} is not recorded: "),
                                                   HasSubstr("; " + energy.string() + ": Permission denied; "))));
  EXPECT_EQ(reading.power, std::nullopt);
  EXPECT_EQ(reading.power_source, "");
}

TEST_F(NodeMeterTest, PowerMetersOfHwmonAreSummed) {
  write_meter("hwmon0", "amdgpu", "", "90000000");
  write_meter("hwmon1", "power_meter", "", "200000000");
  write_meter("hwmon2/device", "power_meter", "", "50500000");  // as kernels before 6.12 have it
  const NodeReading reading = read_once();
  EXPECT_EQ(reading.power, 250.5);
  EXPECT_EQ(reading.power_source, "hwmon");
}

TEST_F(NodeMeterTest, OfGracesMetersTheOutermostCount) {
  write_meter("hwmon1", "power_meter", "Grace Power Socket 0", "200000000");
  write_meter("hwmon2", "power_meter", "CPU Power Socket 0", "150000000");
  write_meter("hwmon3", "power_meter", "SysIO Power Socket 0", "30000000");
  EXPECT_EQ(read_once().power, 200.0);
  write_meter("hwmon4", "power_meter", "Module Power Socket 0", "600000000");
  write_meter("hwmon5", "power_meter", "Module Power Socket 1", "500000000");
  EXPECT_EQ(read_once().power, 1100.0);
}

TEST_F(NodeMeterTest, SlurmIsAskedLastAndNotForEachSample) {
  const tests::EnvironmentVariable in_slurm("SLURMD_NODENAME", "n1");
  std::size_t asked = 0;
  const RunProgram scontrol = [&](const std::vector<std::string>& words) {
    EXPECT_THAT(words, ElementsAre("timeout", "4", "scontrol", "show", "node", "n1"));
    return "NodeName=n1 State=ALLOCATED\n   CurrentWatts=" + std::to_string(300 + asked++) + " AveWatts=0\n";
  };
  NodeMeter meter(root_.path(), scontrol);
  EXPECT_THAT(meter.obstacles(), IsEmpty());
  std::vector<double> watts;
  for (int i = 1; i <= 12; ++i) watts.push_back(meter.read(Seconds(5 * i)).power.value());
  EXPECT_EQ(watts.front(), 300.0);
  EXPECT_EQ(watts.back(), 301.0);
  EXPECT_EQ(asked, 2u);
}

TEST_F(NodeMeterTest, SlurmOftenKnowsNoPower) {
  EXPECT_EQ(scontrol_watts("CurrentWatts=260 AveWatts=200"), 260.0);
  for (const char* output : {"CurrentWatts=0 AveWatts=0", "CurrentWatts=n/s AveWatts=n/s", "State=IDLE", ""}) {
    EXPECT_EQ(scontrol_watts(output), std::nullopt) << output;
  }
  const tests::EnvironmentVariable in_slurm("SLURMD_NODENAME", "n1");
  const NodeMeter meter(root_.path(), [](const auto&) { return std::nullopt; });
  EXPECT_THAT(meter.obstacles(), ElementsAre(HasSubstr("; Slurm knows no CurrentWatts")));
}

TEST_F(NodeMeterTest, WithoutAnySourceEachIsNamedOnce) {
  write("sys/cray/pm_counters/power", "0 W\n");
  write_meter("hwmon0", "power_meter", "", "0");
  write("proc/meminfo", "MemTotal: 10 kB\n");
  std::filesystem::remove(root_ / "proc/stat");
  NodeMeter meter(root_.path());
  const std::string root = root_.path().string();
  EXPECT_THAT(
      meter.obstacles(),
      ElementsAre("CPU utilization of {nodes} is not recorded: " + root + "/proc/stat: No such file or directory",
                  "memory of {nodes} is not recorded: " + root + "/proc/meminfo: no such number",
                  "power of {nodes} is not recorded: " + root + "/sys/cray/pm_counters/power: no such number; " + root +
                      "/sys/class/powercap: no RAPL; " + root +
                      "/sys/class/hwmon/hwmon0/power1_average: no such number"));
  const NodeReading reading = meter.read(Seconds(1));
  EXPECT_FALSE(reading.cpu || reading.memory || reading.power);
}

}  // namespace
}  // namespace mylos::train
