#include "core/kernels/attention/attention_measure.hpp"

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/base/text/printable.hpp"
#include "core/element_type.hpp"
#include "core/kernels/attention/packed_attention.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <limits>
#include <optional>

namespace mylos {
namespace {

constexpr std::size_t attention_rounds = 5;
/// Passes that a device computes between the two events of a timing.
constexpr std::size_t passes_per_timing = runs_on_host ? 1 : 4;
/// Another kernel than the first is taken if it needs less than this fraction of its time: timings are not more
/// repeatable.
constexpr double least_share = 0.97;

/// Fills a matrix with bytes that give a value of about 0.01 in float and bfloat16, and of about 1 in half.
template <class T>
void fill_bytes(const ExecutionSpace& space, const Matrix<T>& matrix) {
  const Vector<std::byte> bytes(reinterpret_cast<std::byte*>(matrix.data()), matrix.size() * sizeof(T));
  Kokkos::deep_copy(space, bytes, std::byte{0x3c});
}

/// Passes over arrays of constant values.
template <class T>
class AttentionBench {
 public:
  AttentionBench(const ExecutionSpace& space, const TimedAttention& attention)
      : space_(space), arrays_("mylos::Attention::measure", attention.shape, attention.lengths) {
    fill_bytes(space, arrays_.qkv);
    fill_bytes(space, arrays_.dqkv);
    fill_bytes(space, arrays_.out);
    fill_bytes(space, arrays_.dout);
    fill_bytes(space, arrays_.log_sum_exp);
    fill_bytes(space, arrays_.row_sums);
  }

  double seconds(AttentionKernel kernel) {
    arrays_.shape.kernel = kernel;
    LaunchTime begin, end;
    begin.set(space_);
    for (std::size_t pass = 0; pass < passes_per_timing; ++pass) arrays_.compute(space_);
    end.set(space_);
    return end.seconds_since(begin) / static_cast<double>(passes_per_timing);
  }

 private:
  const ExecutionSpace& space_;
  PackedAttention<T> arrays_;
};

}  // namespace

AttentionSeconds time_attention(std::span<const AttentionKernel> kernels, const AttentionTimer& timer,
                                const Notice& notice) {
  std::map<AttentionKernel, std::vector<double>> times;
  for (const AttentionKernel kernel : kernels) times[kernel] = {};
  for (std::size_t round = 0; round <= attention_rounds; ++round) {
    for (const AttentionKernel kernel : kernels) {
      if (!times.contains(kernel)) continue;
      try {
        const double seconds = timer(kernel);
        if (round > 0) times[kernel].push_back(seconds);
      } catch (const std::exception& error) {
        times.erase(kernel);
        notice(fmt::format("attention: {} is left out: {}", to_string(kernel), on_one_line(error.what())));
      }
    }
  }
  AttentionSeconds medians;
  for (const auto& [kernel, seconds] : times) medians[kernel] = median(seconds);
  return medians;
}

AttentionSeconds measure_attention(const ExecutionSpace& space, std::span<const AttentionKernel> kernels,
                                   const TimedAttention& attention, const Notice& notice) {
  require(!attention.lengths.empty(), "attention: no sequences to time its kernels with");
  return with_type(attention.precision, [&]<class T>(T) -> AttentionSeconds {
    std::optional<AttentionBench<T>> bench;
    try {
      bench.emplace(space, attention);
    } catch (const std::exception& error) {
      notice(fmt::format("attention: its kernels are not timed: {}", on_one_line(error.what())));
      return {};
    }
    return time_attention(
        kernels, [&](AttentionKernel kernel) { return bench->seconds(kernel); }, notice);
  });
}

AttentionKernel fastest_attention(std::span<const AttentionKernel> kernels, const AttentionSeconds& seconds) {
  AttentionKernel fastest = kernels.front();
  const auto found = seconds.find(fastest);
  double least = found == seconds.end() ? std::numeric_limits<double>::infinity() : least_share * found->second;
  for (const AttentionKernel kernel : kernels.subspan(1)) {
    const auto time = seconds.find(kernel);
    if (time == seconds.end() || time->second >= least) continue;
    fastest = kernel;
    least = time->second;
  }
  return fastest;
}

}  // namespace mylos
