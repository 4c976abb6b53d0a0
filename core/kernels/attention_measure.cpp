#include "core/kernels/attention_measure.hpp"

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/base/shared_library.hpp"
#include "core/element_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>

namespace mylos {
namespace {

constexpr std::size_t attention_rounds = 5;
/// Passes that a device computes between the two events of a timing.
constexpr std::size_t passes_per_timing = runs_on_host ? 1 : 4;
/// Another kernel than the first is taken if it needs less than this fraction of its time: timings are not more
/// repeatable.
constexpr double least_share = 0.97;

std::size_t count_rows(const TimedAttention& attention) {
  return std::accumulate(attention.lengths.begin(), attention.lengths.end(), std::size_t{0});
}

/// Memory whose bytes give a value of about 0.01 in float and bfloat16, and of about 1 in half.
template <class T>
Matrix<T> constant_matrix(const ExecutionSpace& space, std::size_t rows, std::size_t columns) {
  const Matrix<T> matrix(Kokkos::view_alloc("mylos::Attention::measure", Kokkos::WithoutInitializing), rows, columns);
  const Vector<std::byte> bytes(reinterpret_cast<std::byte*>(matrix.data()), matrix.size() * sizeof(T));
  Kokkos::deep_copy(space, bytes, std::byte{0x3c});
  return matrix;
}

/// The arrays of both passes.
template <class T>
class AttentionBench {
 public:
  AttentionBench(const ExecutionSpace& space, const TimedAttention& attention)
      : space_(space), shape_(attention.shape) {
    const std::size_t samples = attention.lengths.size(), rows = count_rows(attention);
    std::vector<std::size_t> starts(samples + 1, 0);
    std::partial_sum(attention.lengths.begin(), attention.lengths.end(), starts.begin() + 1);
    const Vector<std::size_t> device_starts("mylos::Attention::measure", samples + 1);
    Kokkos::deep_copy(device_starts, HostVector<std::size_t>(starts.data(), samples + 1));
    const Vector<std::uint32_t> ids("mylos::Attention::measure", samples);
    sequences_ = {device_starts, ids, *std::ranges::max_element(attention.lengths)};
    qkv_ = constant_matrix<T>(space, rows, shape_.columns());
    dqkv_ = constant_matrix<T>(space, rows, shape_.columns());
    out_ = constant_matrix<T>(space, rows, shape_.heads * shape_.head_size);
    dout_ = constant_matrix<T>(space, rows, shape_.heads * shape_.head_size);
    log_sum_exp_ = constant_matrix<float>(space, shape_.heads, rows);
    row_sums_ = constant_matrix<float>(space, shape_.heads, rows);
  }

  double seconds(AttentionKernel kernel) {
    shape_.kernel = kernel;
    LaunchTime begin, end;
    begin.set(space_);
    for (std::size_t pass = 0; pass < passes_per_timing; ++pass) {
      attention_forward<T>(space_, shape_, sequences_, {}, qkv_, out_, log_sum_exp_);
      attention_backward<T>(space_, shape_, sequences_, {}, qkv_, out_, log_sum_exp_, dout_, dqkv_, row_sums_);
    }
    end.set(space_);
    return end.seconds_since(begin) / static_cast<double>(passes_per_timing);
  }

 private:
  const ExecutionSpace& space_;
  AttentionShape shape_;
  PackedSequences sequences_;
  Matrix<T> qkv_, dqkv_, out_, dout_;
  Matrix<float> log_sum_exp_, row_sums_;
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
