#include "app/bench/bench.hpp"
#include "bench/bench_program.hpp"
#include "bench/kernel_cases.hpp"
#include "core/base/error.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/element_type.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

/// bench_kernels [--precision P,P] [--sizes MB,MB] [--columns H] [--only KERNEL] [--repeats N] [--json]: validates the
/// memory-bound kernels of a step and times them at several sizes, next to a copy of the same number of bytes. A copy
/// of the largest size defines the memory bandwidth; `over` is the time that all launches of a kernel take beyond its
/// bytes at this bandwidth.
namespace mylos::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;
namespace tools = Kokkos::Tools::Experimental;

constexpr double megabyte = 1e6;

/// Returns the seconds of a copy that reads and writes `bytes` in total.
double copy_seconds(double bytes, std::size_t repeats) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  const Vector<char> from("mylos::bench::copied", half), to("mylos::bench::copy", half);
  const ExecutionSpace space;
  return seconds_of(repeats, [&] { Kokkos::deep_copy(space, to, from); });
}

std::vector<KernelKind> kernel_kinds() {
  std::vector<KernelKind> all;
  for (const auto& kinds :
       {layer_norm_kinds(), batch_norm_kinds(), activation_kinds(), embedding_kinds(), loss_kinds(), update_kinds()}) {
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  return all;
}

/// Counts the kernels launched during its lifetime, with Kokkos Tools callbacks. Only one instance may exist at a time.
class LaunchCount {
 public:
  LaunchCount() : before_(tools::get_callbacks()) {
    count = 0;
    tools::set_begin_parallel_for_callback(&LaunchCount::add);
    tools::set_begin_parallel_reduce_callback(&LaunchCount::add);
    tools::set_begin_parallel_scan_callback(&LaunchCount::add);
  }
  ~LaunchCount() { tools::set_callbacks(before_); }
  LaunchCount(const LaunchCount&) = delete;
  LaunchCount& operator=(const LaunchCount&) = delete;

  std::size_t value() const { return count; }

 private:
  static void add(const char*, std::uint32_t, std::uint64_t*) { ++count; }

  static inline std::size_t count = 0;
  tools::EventSet before_;
};

std::size_t launches_of(const KernelCase& one, const ExecutionSpace& space) {
  const LaunchCount launches;
  one.launch(space);
  return launches.value();
}

struct Settings {
  std::vector<std::size_t> sizes;  ///< MB
  std::vector<Precision> precisions;
  std::size_t columns = 0, repeats = 0;
  std::string only;  ///< kernel; empty: all
  bool json = false;
};

void print_row(const OrderedJson& row) {
  print(fmt::format("{:20} {:9} {:10.2f} MB {:10.2f} us {:8.1f} GB/s {:6.1f} % of a copy {:10.2f} us over\n",
                    row["kernel"].get<std::string>(), row["precision"].get<std::string>(),
                    row["bytes"].get<double>() / megabyte, 1e6 * row["seconds"].get<double>(),
                    row["gbytes_per_second"].get<double>(), 100.0 * row["share_of_copy"].get<double>(),
                    1e6 * row["over_seconds"].get<double>()));
}

class KernelBench {
 public:
  /// Times the copies.
  explicit KernelBench(const Settings& settings) : settings_(settings) {
    if (!settings_.json) app::print_bench_context();
    for (const std::size_t size : settings_.sizes) {
      const double bytes = static_cast<double>(size) * megabyte;
      const double rate = bytes / copy_seconds(bytes, settings_.repeats);
      copies_.push_back({{"bytes", bytes}, {"gbytes_per_second", 1e-9 * rate}});
      if (size == std::ranges::max(settings_.sizes)) memory_ = rate;
      if (!settings_.json) print(fmt::format("a copy of {} MB in all: {:.1f} GB/s\n", size, 1e-9 * rate));
    }
  }

  /// Measures one kernel at all sizes.
  void measure(const KernelKind& kind, Precision precision) {
    for (const std::size_t size : settings_.sizes) {
      const auto one = kind.make(precision, size * static_cast<std::size_t>(megabyte), settings_.columns);
      const ExecutionSpace space;
      const std::size_t launches = launches_of(*one, space);
      space.fence("mylos::bench::check");
      one->check();
      const double seconds = seconds_of(settings_.repeats, [&] { one->launch(space); });
      rows_.push_back({{"kernel", kind.name},
                       {"precision", to_string(precision)},
                       {"bytes", one->bytes()},
                       {"launches", launches},
                       {"seconds", seconds},
                       {"gbytes_per_second", 1e-9 * one->bytes() / seconds},
                       {"share_of_copy", copy_seconds(one->bytes(), settings_.repeats) / seconds},
                       {"over_seconds", seconds - one->bytes() / memory_}});
      if (!settings_.json) print_row(rows_.back());
    }
  }

  OrderedJson json() const { return {{"context", app::bench_context()}, {"copies", copies_}, {"kernels", rows_}}; }

 private:
  const Settings& settings_;
  double memory_ = 0.0;  ///< bytes per second of the largest copy
  OrderedJson copies_ = OrderedJson::array(), rows_ = OrderedJson::array();
};

/// Errors: UsageError if there is no such kernel.
void check_name(const std::string& only) {
  std::string names;
  for (const KernelKind& kind : kernel_kinds()) {
    if (only.empty() || kind.name == only) return;
    names += " " + kind.name;
  }
  throw UsageError(fmt::format("--only {}: expected one of{}", only, names));
}

Settings read_settings(const Options& options) {
  const std::vector<std::size_t> sizes =
      runs_on_host ? std::vector<std::size_t>{1, 16, 64} : std::vector<std::size_t>{1, 4, 16, 64, 256, 1024};
  const Settings settings{options.counts("sizes", sizes), options.precisions({Precision::float32, Precision::bfloat16}),
                          options.count("columns", 768),  options.count("repeats", 9),
                          options.text("only", ""),       options.json()};
  check_name(settings.only);
  return settings;
}

void run(int argc, char** argv) {
  const Settings settings = read_settings(Options(argc, argv, {"precision", "sizes", "columns", "only", "repeats"}));
  const app::ComputeScope compute;
  for (const Precision precision : settings.precisions) app::check_precision(precision, false);
  KernelBench bench(settings);
  for (const Precision precision : settings.precisions) {
    for (const KernelKind& kind : kernel_kinds()) {
      if (settings.only.empty() || kind.name == settings.only) bench.measure(kind, precision);
    }
  }
  if (settings.json) print(bench.json().dump(2) + "\n");
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  return mylos::bench::run_program("bench_kernels", [&] { mylos::bench::run(argc, argv); });
}
