#include "core/kernels/products/gemm_measure.hpp"

#include "core/base/stopwatch.hpp"
#include "core/kernels/products/gemm_provider.hpp"

#include <algorithm>
#include <array>

namespace mylos {
namespace {

/// Rows of the first timing of a product, and minimum output pixels for a convolution: enough to reach a provider's
/// rate, few enough to be quick.
constexpr std::size_t probe_rows = 256, probe_pixels = 1024;
constexpr std::size_t rounds = 3;
/// Providers whose probe takes longer than this multiple of the fastest's are not timed further.
constexpr double hopeless = 1.5;
/// The fallback stays unless another provider needs less than this fraction of its time: timings are not more
/// repeatable.
constexpr double margin = 0.97;

double total_flops(const GemmProduct& product) { return static_cast<double>(product.count) * product.flops(); }

/// Returns the reduced product for the first timing of `product`.
GemmProduct probe_of(const GemmProduct& product) {
  if (!product.convolution) return with_batch_extent(product, probe_rows);
  const std::size_t pixels = product.convolution->shape.out_pixels();
  return with_batch_extent(product, (probe_pixels + pixels - 1) / pixels);
}

/// Timings with their total duration.
class TimedCalls {
 public:
  explicit TimedCalls(const GemmTimer& timer) : timer_(timer) {}

  /// Returns the shorter of two calls after a warm-up call, in which the provider sets up what it keeps per shape.
  double probe(std::size_t provider, const GemmProduct& product) {
    once(provider, product);
    const double seconds = once(provider, product);
    return std::min(seconds, once(provider, product));
  }
  double once(std::size_t provider, const GemmProduct& product) {
    const double seconds = timer_(provider, product);
    spent_ += seconds;
    return seconds;
  }
  double spent() const { return spent_; }

 private:
  const GemmTimer& timer_;
  double spent_ = 0.0;
};

/// Returns the fallback, and the providers whose probe is close enough to the fastest.
std::vector<std::size_t> contenders(const GemmMeasurement& measurement, const std::vector<double>& probes) {
  const double fastest = *std::ranges::min_element(probes);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i] <= hopeless * fastest || measurement.providers[i] == measurement.fallback) left.push_back(i);
  }
  return left;
}

/// Returns `product` with as many rows, or images, as `calls` calls can process within `seconds`, given that `probe`
/// took `probe_seconds`.
GemmProduct affordable(const GemmProduct& product, const GemmProduct& probe, double probe_seconds, double seconds,
                       std::size_t calls) {
  const double rows = static_cast<double>(batch_extent(probe)) * seconds / (probe_seconds * static_cast<double>(calls));
  return with_batch_extent(product,
                           static_cast<std::size_t>(std::clamp(rows, 0.0, static_cast<double>(batch_extent(product)))));
}

/// Sets least[i] to the shortest time of provider i for `product`, for the providers in `left`; the others keep their
/// values.
void time_in_turns(const GemmProduct& product, const std::vector<std::size_t>& left, TimedCalls& calls,
                   std::vector<double>& least) {
  for (const std::size_t provider : left) calls.once(provider, product);
  for (const std::size_t provider : left) least[provider] = calls.once(provider, product);
  for (std::size_t round = 1; round < rounds; ++round) {
    for (const std::size_t provider : left) least[provider] = std::min(least[provider], calls.once(provider, product));
  }
}

/// Returns the index of the provider for `product`, timing for about `seconds`.
std::size_t fastest_provider(const GemmMeasurement& measurement, const GemmProduct& product, double seconds,
                             TimedCalls& calls) {
  const double end = calls.spent() + seconds;
  const GemmProduct probe = probe_of(product);
  std::vector<double> least;
  for (std::size_t i = 0; i < measurement.providers.size(); ++i) least.push_back(calls.probe(i, probe));
  const std::vector<std::size_t> left = contenders(measurement, least);
  double slowest = 0.0;
  for (const std::size_t provider : left) slowest = std::max(slowest, least[provider]);
  const GemmProduct timed = affordable(product, probe, slowest, end - calls.spent(), left.size() * (rounds + 1));
  // If no more rows than the probe's can be afforded, the probes decide.
  if (left.size() > 1 && batch_extent(timed) >= batch_extent(probe)) time_in_turns(timed, left, calls, least);
  return *std::ranges::min_element(left, {}, [&](std::size_t provider) {
    return least[provider] * (measurement.providers[provider] == measurement.fallback ? margin : 1.0);
  });
}

/// Operands of constant values, in memory reused by all products.
class Operands {
 public:
  explicit Operands(const ExecutionSpace& space) : space_(space) {}

  GemmCall call(const GemmProduct& product) {
    GemmCall call = call_of(product);
    const OperandSizes sizes = operand_sizes(product);
    call.a = memory(0, sizes.a);
    call.b = memory(1, sizes.b);
    call.c = memory(2, sizes.c);
    call.bias = memory(3, call.n);
    call.pre = memory(4, call.epilogue == EpilogueKind::none ? 0 : call.m * call.n);
    return call;
  }

 private:
  /// Returns memory for `count` elements of float size. Its bytes give a value of about 0.01 in float and bfloat16, and
  /// of about 1 in half.
  void* memory(std::size_t operand, std::size_t count) {
    Vector<std::byte>& held = memory_[operand];
    if (held.size() < count * sizeof(float)) {
      held = {};
      held = uninitialized<std::byte>("mylos::gemm::measure", count * sizeof(float));
      Kokkos::deep_copy(space_, held, std::byte{0x3c});
      space_.fence("mylos::gemm::measure");
    }
    return held.data();
  }

  const ExecutionSpace& space_;
  std::array<Vector<std::byte>, 5> memory_;
};

/// Times calls of providers.
class Bench {
 public:
  Bench(const ExecutionSpace& space, const std::vector<std::string>& providers) : space_(space), operands_(space) {
    for (const std::string& name : providers) providers_.push_back(make_gemm_provider(name));
  }

  double time(std::size_t provider, const GemmProduct& product) {
    const GemmCall call = operands_.call(product);
    const Stopwatch watch;
    providers_[provider]->multiply(space_, call);
    space_.fence("mylos::gemm::measure");
    return watch.seconds();
  }

 private:
  const ExecutionSpace& space_;
  std::vector<std::unique_ptr<GemmProvider>> providers_;
  Operands operands_;
};

}  // namespace

GemmChoice choose_gemm(const GemmMeasurement& measurement, std::vector<GemmProduct> products, const GemmTimer& timer) {
  GemmChoice choice{measurement.fallback, {}};
  if (measurement.providers.size() < 2) return choice;
  std::ranges::stable_sort(products, std::ranges::greater(), total_flops);
  double left_flops = 0.0;
  for (const GemmProduct& product : products) left_flops += product.flops();
  TimedCalls calls(timer);
  for (const GemmProduct& product : products) {
    const double left_seconds = measurement.seconds - calls.spent();
    if (left_seconds <= 0.0) break;
    const GemmKey key = key_of(product);
    if (!choice.products.contains(key)) {
      const double share = left_seconds * product.flops() / left_flops;
      choice.products[key] = measurement.providers[fastest_provider(measurement, product, share, calls)];
    }
    left_flops -= product.flops();
  }
  return choice;
}

GemmChoice measure_gemm(const ExecutionSpace& space, const GemmMeasurement& measurement,
                        const std::vector<GemmProduct>& products) {
  if (measurement.providers.size() < 2 || products.empty()) return {measurement.fallback, {}};
  Bench bench(space, measurement.providers);
  return choose_gemm(measurement, products, [&bench](std::size_t provider, const GemmProduct& product) {
    return bench.time(provider, product);
  });
}

void warm_up(const ExecutionSpace& space, const Gemm& gemm, std::span<const GemmProduct> products,
             const std::function<void()>& begin) {
  constexpr int times = 2;  // threads that allocated one after the other in the first call may do so at the same time
                            // in the next
  Operands operands(space);
  for (const GemmProduct& product : products) operands.call(product);
  begin();
  for (const GemmProduct& product : products) {
    for (int time = 0; time < times; ++time) gemm.multiply(space, operands.call(product));
  }
  space.fence("mylos::gemm::measure");
}

}  // namespace mylos
