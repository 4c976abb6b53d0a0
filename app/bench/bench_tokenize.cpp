#include "app/bench/bench.hpp"
#include "app/options/tool_options.hpp"
#include "core/base/files/files.hpp"
#include "core/base/median.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/task_kind.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

/// mylos bench tokenize: ids and offsets of a data set's texts, on one thread. Does not start Kokkos or MPI.
namespace mylos::app {
namespace {

std::unique_ptr<data::Tokenizer> find_tokenizer(const Arguments& arguments) {
  if (arguments.model.empty() == arguments.tokenize->vocabulary.empty()) {
    throw UsageError("bench tokenize needs either --vocab or --model; see mylos bench --help");
  }
  if (arguments.model.empty()) {
    return families::read_vocabulary(arguments.tokenize->vocabulary, !arguments.tokenize->cased);
  }
  return families::read_tokenizer(FileReader(), families::resolve_model(FileReader(), arguments.model));
}

struct Measurement {
  std::size_t texts = 0, bytes = 0, tokens = 0;
  double seconds = 0.0;
};

Measurement measure(const std::vector<std::string>& texts, const data::Tokenizer& tokenizer, std::size_t repeats) {
  Measurement measured{.texts = texts.size()};
  for (const std::string& text : texts) measured.bytes += text.size();
  std::vector<double> seconds;
  for (std::size_t repeat = 0; repeat < bench_warm_ups + repeats; ++repeat) {
    const Stopwatch watch;
    data::Tokens tokens;
    for (const std::string& text : texts) tokenizer.tokenize(text, tokens);
    if (repeat >= bench_warm_ups) seconds.push_back(watch.seconds());
    measured.tokens = tokens.ids.size();
  }
  measured.seconds = median(std::move(seconds));
  return measured;
}

void print_measurement(const Arguments& arguments, const Measurement& measured) {
  const auto rate = [&](std::size_t count) { return static_cast<double>(count) / measured.seconds; };
  if (arguments.json) {
    nlohmann::ordered_json context = bench_context();
    context["threads"] = 1;
    const nlohmann::ordered_json result = {{"context", context},
                                           {"data", arguments.data.string()},
                                           {"texts", measured.texts},
                                           {"bytes", measured.bytes},
                                           {"tokens", measured.tokens},
                                           {"seconds", measured.seconds},
                                           {"texts_per_second", rate(measured.texts)},
                                           {"megabytes_per_second", 1e-6 * rate(measured.bytes)},
                                           {"tokens_per_second", rate(measured.tokens)}};
    print_indented_json(result);
    return;
  }
  print_bench_context();
  print(fmt::format("tokenize: {}, {} texts, {} bytes, {} tokens with offsets, one thread; the median of {}\n",
                    arguments.data.string(), measured.texts, measured.bytes, measured.tokens, arguments.repeats));
  print(fmt::format("{:.0f} texts/s, {:.1f} MB/s, {:.0f} tokens/s\n", rate(measured.texts), 1e-6 * rate(measured.bytes),
                    rate(measured.tokens)));
}

}  // namespace

int bench_tokenize(const Arguments& arguments) {
  if (arguments.data.empty()) throw UsageError("bench tokenize needs --data; see mylos bench --help");
  const std::unique_ptr<data::Tokenizer> tokenizer = find_tokenizer(arguments);
  const std::vector<std::string> texts = arguments.task->texts(arguments.data);
  print_measurement(arguments, measure(texts, *tokenizer, arguments.repeats));
  return 0;
}

}  // namespace mylos::app
