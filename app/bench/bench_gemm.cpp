#include "app/bench/bench.hpp"
#include "app/bench/gemm_timing.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/compute.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "tasks/interface/planned_run.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Returns the model of --model or --shapes. Errors: UsageError if neither names one.
std::string model_name(const Arguments& arguments) {
  if (!arguments.model.empty()) return arguments.model;
  if (!arguments.bench->shapes.empty()) return arguments.bench->shapes;
  const std::vector<std::string> known = arguments.task->known_models();
  if (!known.empty()) return known.front();
  throw UsageError(
      fmt::format("bench gemm needs --model: no model for {} is known by its sizes", arguments.task->title()));
}

/// The rate of one product with one provider.
struct ProviderRate {
  const GemmProduct& product;
  std::string_view provider;
  double rate;  ///< operations per second
  bool is_fastest;

  double seconds() const { return product.flops() / rate; }
  double gflops() const { return 1e-9 * rate; }
};

std::vector<ProviderRate> rates_of(const ProductRates& rates, const std::vector<std::string>& providers) {
  std::vector<ProviderRate> all;
  for (std::size_t i = 0; i < providers.size(); ++i) {
    all.push_back({rates.product, providers[i], rates.rate(i), i == rates.fastest()});
  }
  return all;
}

OrderedJson rate_json(const ProviderRate& rate) {
  const GemmProduct& product = rate.product;
  return {{"product", product.name},
          {"calls", static_cast<double>(product.count)},
          {"m", product.m},
          {"n", product.n},
          {"k", product.k},
          {"precision", to_string(product.input)},
          {"provider", rate.provider},
          {"seconds", rate.seconds()},
          {"gflops", rate.gflops()},
          {"fastest", rate.is_fastest}};
}

void print_rate(const ProviderRate& rate) {
  const GemmProduct& product = rate.product;
  print(fmt::format("{:34} {:>6} {:>6} {:>6}  {:9} {:15} {:10.3f} ms {:9.1f} GFLOP/s{}\n", product.name, product.m,
                    product.n, product.k, to_string(product.input), rate.provider, 1e3 * rate.seconds(), rate.gflops(),
                    rate.is_fastest ? "  fastest" : ""));
}

/// Returns the GFLOP/s of a whole training pass with each provider, and with the fastest provider for each product.
std::vector<std::pair<std::string, double>> combined_rates(const std::vector<ProductRates>& products,
                                                           const std::vector<std::string>& providers) {
  std::vector<std::pair<std::string, double>> rates;
  for (std::size_t i = 0; i < providers.size(); ++i) {
    rates.emplace_back(providers[i],
                       1e-9 * combined_rate(products, [i](const ProductRates& each) { return each.rate(i); }));
  }
  rates.emplace_back("fastest of each", 1e-9 * ceiling_rate(products));
  return rates;
}

}  // namespace

int bench_gemm(const Arguments& arguments) {
  const std::string name = model_name(arguments);
  const std::unique_ptr<nn::Model> network =
      arguments.task->plan(name, {}, arguments.run, {}, [](const std::string&) {}).network;
  const ComputeScope compute;
  check_precision(arguments.run.engine.precision, arguments.run.engine.gemm.tf32);
  ProductTimer timer(timed_providers(arguments));
  if (!arguments.json) {
    print_bench_context();
    print(fmt::format("gemm: products of {}, {} tokens; m, n, k; the median of {}\n", name, arguments.bench->tokens,
                      arguments.repeats));
  }
  std::vector<ProductRates> products;
  OrderedJson rows = OrderedJson::array();
  for (const GemmProduct& product : training_products(*network, arguments.bench->tokens)) {
    timer.time(product, arguments.repeats, products.emplace_back());
    for (const ProviderRate& rate : rates_of(products.back(), timer.providers())) {
      if (arguments.json) {
        rows.push_back(rate_json(rate));
      } else {
        print_rate(rate);
      }
    }
  }
  const auto rates = combined_rates(products, timer.providers());
  if (arguments.json) {
    OrderedJson gflops;
    for (const auto& [provider, rate] : rates) gflops[provider] = rate;
    print(OrderedJson{{"context", bench_context()}, {"model", name}, {"products", rows}, {"gflops", gflops}}.dump(2) +
          "\n");
    return 0;
  }
  for (const auto& [provider, rate] : rates) {
    print(fmt::format("a training pass by {:18} {:9.1f} GFLOP/s\n", provider, rate));
  }
  return 0;
}

}  // namespace mylos::app
