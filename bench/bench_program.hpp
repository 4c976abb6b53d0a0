#pragma once

#include "core/base/median.hpp"
#include "core/base/precision.hpp"
#include "core/base/stopwatch.hpp"
#include "core/device.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Shared parts of the benchmark programs: options, timing and error handling.
namespace mylos::bench {

/// The options after the program's name: "--name value", and "--json" without a value.
class Options {
 public:
  /// Errors: UsageError for a name that is not in `known` or has no value.
  Options(int argc, char** argv, std::initializer_list<std::string_view> known);

  bool json() const { return json_; }
  bool has(std::string_view name) const { return values_.contains(name); }
  /// Returns the comma-separated values, or `otherwise` if the option is not given. Errors: UsageError.
  std::vector<std::size_t> counts(std::string_view name, const std::vector<std::size_t>& otherwise) const;
  std::vector<float> probabilities(std::string_view name, const std::vector<float>& otherwise) const;
  /// Returns the named `choices`, or all of them if the option is not given.
  std::vector<std::string> names(std::string_view name, const std::vector<std::string>& choices) const;
  std::vector<Precision> precisions(const std::vector<Precision>& otherwise) const;
  std::size_t count(std::string_view name, std::size_t otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;

 private:
  std::vector<std::string> words(std::string_view name) const;

  std::map<std::string, std::string, std::less<>> values_;
  bool json_ = false;
};

/// Returns the seconds of one call on ExecutionSpace(), as the median of `repeats` timings. Each timing runs enough
/// consecutive calls to take about a millisecond, so that clock resolution and the final fence do not matter. Arrays
/// that fit in a cache stay there.
template <class Call>
double seconds_of(std::size_t repeats, const Call& call) {
  constexpr double enough = 1e-3;
  constexpr std::size_t most = 200;
  const auto timed = [&call](std::size_t calls) {
    const Stopwatch watch;
    for (std::size_t i = 0; i < calls; ++i) call();
    Kokkos::fence("mylos::bench::wait");
    return watch.seconds() / static_cast<double>(calls);
  };
  timed(1);
  const double once = timed(1);
  const std::size_t calls = once < enough ? std::min(most, static_cast<std::size_t>(enough / once) + 1) : 1;
  std::vector<double> times;
  for (std::size_t i = 0; i < repeats; ++i) times.push_back(timed(calls));
  return median(times);
}

/// Runs `body` and returns the exit code. Prints an error as one line that begins with the program's name.
int run_program(std::string_view name, const std::function<void()>& body);

}  // namespace mylos::bench
