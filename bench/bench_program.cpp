#include "bench/bench_program.hpp"

#include "core/base/options/option_values.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <exception>

namespace mylos::bench {

Options::Options(int argc, char** argv, std::initializer_list<std::string_view> known) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      json_ = true;
      continue;
    }
    const std::string_view name = word.starts_with("--") ? word.substr(2) : "";
    if (std::ranges::find(known, name) == known.end()) {
      throw UsageError(fmt::format("{}: expected --json or --{} VALUE", word, fmt::join(known, " VALUE, --")));
    }
    if (i + 1 == argc) throw UsageError(fmt::format("{} wants a value", word));
    values_[std::string(name)] = argv[++i];
  }
}

std::vector<std::string> Options::words(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : split(found->second, ',');
}

std::vector<std::size_t> Options::counts(std::string_view name, const std::vector<std::size_t>& otherwise) const {
  const CountRange range{1, 1'000'000};
  std::vector<std::size_t> counts;
  for (const std::string& word : words(name)) {
    const auto count = parse_count(word, range);
    if (!count) throw UsageError(fmt::format("--{} {}: expected {}", name, word, describe(range)));
    counts.push_back(*count);
  }
  return counts.empty() ? otherwise : counts;
}

std::size_t Options::count(std::string_view name, std::size_t otherwise) const {
  return counts(name, {otherwise}).front();
}

std::string Options::text(std::string_view name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

std::vector<float> Options::probabilities(std::string_view name, const std::vector<float>& otherwise) const {
  const RealRange range{.smallest = 0.0, .largest = 1.0, .open_above = true};
  std::vector<float> values;
  for (const std::string& word : words(name)) {
    const auto value = parse_real(word, range);
    if (!value) throw UsageError(fmt::format("--{} {}: expected {}", name, word, describe(range)));
    values.push_back(static_cast<float>(*value));
  }
  return values.empty() ? otherwise : values;
}

std::vector<std::string> Options::names(std::string_view name, const std::vector<std::string>& choices) const {
  std::vector<std::string> named = words(name);
  for (const std::string& word : named) {
    if (std::ranges::find(choices, word) != choices.end()) continue;
    throw UsageError(fmt::format("--{} {}: expected {}", name, word, fmt::join(choices, " or ")));
  }
  return named.empty() ? choices : named;
}

std::vector<Precision> Options::precisions(const std::vector<Precision>& otherwise) const {
  constexpr std::array all = {Precision::float32, Precision::bfloat16, Precision::float16};
  std::vector<Precision> precisions;
  for (const std::string& word : words("precision")) {
    const auto found = std::ranges::find(all, word, [](Precision one) { return to_string(one); });
    if (found == all.end()) throw UsageError(fmt::format("--precision {}: expected float, bfloat16 or half", word));
    precisions.push_back(*found);
  }
  return precisions.empty() ? otherwise : precisions;
}

int run_program(std::string_view name, const std::function<void()>& body) {
  const auto say = [name](const std::exception& error) { fmt::print(stderr, "{}: error: {}\n", name, error.what()); };
  try {
    body();
    flush_output();
    return 0;
  } catch (const ReaderGone&) {
    return 1;
  } catch (const UsageError& error) {
    say(error);
    return 2;
  } catch (const std::exception& error) {
    say(error);
    return 1;
  }
}

}  // namespace mylos::bench
