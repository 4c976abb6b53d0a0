#include "app/bench/bench.hpp"
#include "app/bench/gemm_timing.hpp"
#include "app/program/compute.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the model of --model or --shapes. Errors: UsageError if neither names one.
std::string model_name(const Arguments& arguments) {
  if (!arguments.model.empty()) return arguments.model;
  if (!arguments.shapes.empty()) return arguments.shapes;
  const std::vector<std::string> known = arguments.task->known_models();
  if (!known.empty()) return known.front();
  throw UsageError(
      fmt::format("bench gemm needs --model: no model for {} is known by its sizes", arguments.task->title()));
}

std::vector<Json> rows_of(const ProductRates& rates, const std::vector<std::string>& providers) {
  std::vector<Json> rows;
  const GemmProduct& product = rates.product;
  for (std::size_t i = 0; i < providers.size(); ++i) {
    rows.push_back({{"product", product.name},
                    {"calls", static_cast<double>(product.count)},
                    {"m", product.m},
                    {"n", product.n},
                    {"k", product.k},
                    {"precision", to_string(product.input)},
                    {"provider", providers[i]},
                    {"seconds", product.flops() / rates.rate(i)},
                    {"gflops", 1e-9 * rates.rate(i)},
                    {"fastest", i == rates.fastest()}});
  }
  return rows;
}

void print_product(const Json& row) {
  print(fmt::format("{:34} {:>6} {:>6} {:>6}  {:9} {:15} {:10.3f} ms {:9.1f} GFLOP/s{}\n",
                    row["product"].get<std::string>(), row["m"].dump(), row["n"].dump(), row["k"].dump(),
                    row["precision"].get<std::string>(), row["provider"].get<std::string>(),
                    1e3 * row["seconds"].get<double>(), row["gflops"].get<double>(),
                    row["fastest"].get<bool>() ? "  fastest" : ""));
}

/// Returns the GFLOP/s of a whole training pass with each provider, and with the fastest provider for each product.
Json combined_rates(const std::vector<ProductRates>& products, const std::vector<std::string>& providers) {
  Json rates;
  for (std::size_t i = 0; i < providers.size(); ++i) {
    rates[providers[i]] = 1e-9 * combined_rate(products, [i](const ProductRates& each) { return each.rate(i); });
  }
  rates["fastest of each"] = 1e-9 * ceiling_rate(products);
  return rates;
}

}  // namespace

int bench_gemm(const Arguments& arguments) {
  const std::string name = model_name(arguments);
  const auto network = arguments.task->network(name, arguments.run.engine.precision);
  const ComputeScope compute;
  check_precision(arguments.run.engine.precision, arguments.run.engine.gemm.tf32);
  ProductTimer timer(timed_providers(arguments));
  if (!arguments.json) {
    print_bench_context();
    print(fmt::format("gemm: products of {}, {} tokens; m, n, k; the median of {}\n", name, arguments.tokens,
                      arguments.repeats));
  }
  std::vector<ProductRates> products;
  Json rows = Json::array();
  for (const GemmProduct& product : training_products(*network, arguments.tokens)) {
    timer.time(product, arguments.repeats, products.emplace_back());
    for (const Json& row : rows_of(products.back(), timer.providers())) {
      rows.push_back(row);
      if (!arguments.json) print_product(row);
    }
  }
  const Json rates = combined_rates(products, timer.providers());
  if (arguments.json) {
    print(Json{{"context", bench_context()}, {"model", name}, {"products", rows}, {"gflops", rates}}.dump(2) + "\n");
    return 0;
  }
  for (const auto& [name, rate] : rates.items()) {
    print(fmt::format("a training pass by {:18} {:9.1f} GFLOP/s\n", name, rate.get<double>()));
  }
  return 0;
}

}  // namespace mylos::app
