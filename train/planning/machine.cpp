#include "train/planning/machine.hpp"

#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::train {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;
/// CUDA's context, cuBLASLt's code and workspace; not measured yet.
constexpr std::size_t gpu_reserve = gib;

/// Chosen by comparison with published runs of sharded training (docs/plan.md).
constexpr double share_beside_exchange = 0.5;

/// Threads that a GPU multiprocessor runs concurrently, for all of these kinds.
constexpr std::size_t of_multiprocessor = 2048;

/// Fractions of the peak rates that fine-tuning reaches. These are assumptions, and outputs that use them say so.
constexpr double share_of_16_bit = 0.40, share_of_float = 0.70, share_of_bandwidth = 0.80;

struct Peaks {
  double float32, bfloat16, half;
};

/// Properties that all kinds of GPUs of one architecture share.
struct Architecture {
  GpuArchitecture gpu;
  std::size_t multiprocessors;
  std::size_t connections;  ///< MiB
  std::size_t of_node = 4;
};

Machine gpu(const char* name, std::size_t memory, const Peaks& peaks, double bandwidth, double link,
            const Architecture& architecture, bool is_compared, std::vector<std::string> aliases = {}) {
  return {.name = name,
          .aliases = std::move(aliases),
          .memory = memory,
          .reserved = gpu_reserve,
          .float32 = peaks.float32,
          .bfloat16 = peaks.bfloat16,
          .half = peaks.half,
          .bandwidth = bandwidth,
          .link = link,
          .connections = architecture.connections << 20,
          .of_node = architecture.of_node,
          .threads = architecture.multiprocessors * of_multiprocessor,
          .architecture = architecture.gpu,
          .contention = share_beside_exchange,
          .is_compared = is_compared};
}

}  // namespace

double Machine::peak(Precision precision) const {
  switch (precision) {
    case Precision::float32:
      return float32;
    case Precision::bfloat16:
      return bfloat16;
    case Precision::float16:
      return half;
  }
  return 0.0;
}

std::span<const Machine> gpu_kinds() {
  // Rings and trees connect to both neighbours, in both directions: 24 MiB a channel (docs/plan.md). Volta: 12
  // channels, by formula. Ampere: as reported for 4 A100 (github.com/NVIDIA/nccl/issues/964). Hopper: for 8 H100 (issue
  // 1685), perhaps with a part of CUDA's context.
  constexpr Architecture volta{nvidia_gpu(70), 80, 288}, ampere{nvidia_gpu(80), 108, 688},
      hopper{nvidia_gpu(90), 132, 1088}, blackwell{nvidia_gpu(100), 148, 1088};
  // RCCL's connections are not known: as many as Hopper's. An MI250X counts as the two GPUs that ranks see, whose rings
  // pass over two links of 50 GB/s; the others have 64 GB/s for each link to another GPU, two links between MI300A.
  constexpr Architecture gcd{amd_gpu(0x90a), 110, 1088, 8}, mi300a{amd_gpu(0x942), 228, 1088, 4},
      mi300x{amd_gpu(0x942), 304, 1088, 8};
  static const std::array kinds = {
      gpu("v100-16", 16 * gib, {15.7e12, 0.0, 125e12}, 0.90e12, 120e9, volta, false),
      gpu("v100-32", 32 * gib, {15.7e12, 0.0, 125e12}, 0.90e12, 120e9, volta, false),
      gpu("a100-40", 40 * gib, {19.5e12, 312e12, 312e12}, 1.555e12, 240e9, ampere, true, {"a100_40gb"}),
      gpu("a100-80", 80 * gib, {19.5e12, 312e12, 312e12}, 2.039e12, 240e9, ampere, true, {"a100_80gb"}),
      gpu("h100", 80 * gib, {67e12, 989e12, 989e12}, 3.35e12, 360e9, hopper, true, {"h100_80gb"}),
      gpu("h200", 141'000'000'000, {67e12, 989e12, 989e12}, 4.8e12, 360e9, hopper, false),
      gpu("gh200", 96'000'000'000, {67e12, 989e12, 989e12}, 4.0e12, 360e9, hopper, false),
      gpu("b200", 180'000'000'000, {75e12, 2250e12, 2250e12}, 7.7e12, 720e9, blackwell, false),
      gpu("mi250x", 64 * gib, {47.9e12, 191.5e12, 191.5e12}, 1.638e12, 80e9, gcd, false),
      gpu("mi300a", 128 * gib, {122.6e12, 980.6e12, 980.6e12}, 5.3e12, 307e9, mi300a, false),
      gpu("mi300x", 192 * gib, {163.4e12, 1307.4e12, 1307.4e12}, 5.3e12, 358e9, mi300x, false),
  };
  return kinds;
}

const Machine* find_gpu_kind(std::string_view name) {
  const auto found = std::ranges::find(gpu_kinds(), name, &Machine::name);
  return found == gpu_kinds().end() ? nullptr : &*found;
}

ComputeRate assumed_rate(const Machine& machine, Precision precision) {
  const double peak = machine.peak(precision);
  if (peak == 0.0) {
    throw SettingError("gpu", machine.name,
                       fmt::format("it has no {}; use {}", to_string(precision),
                                   setting("precision", machine.half > 0.0 ? "half" : "float")));
  }
  const double share = precision == Precision::float32 ? share_of_float : share_of_16_bit;
  return {.flops = share * peak,
          .bandwidth = share_of_bandwidth * machine.bandwidth,
          .origin = fmt::format("assumed: {:.0f} % of the data sheet's {:.0f} TFLOP/s", 100.0 * share, 1e-12 * peak)};
}

}  // namespace mylos::train
