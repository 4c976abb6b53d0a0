#include "app/bench/bench.hpp"
#include "app/bench/gemm_timing.hpp"
#include "bench/bench_program.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/kernels/products/openblas_kernels.hpp"
#include "nn/layers/convolution.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

/// bench_convolution [--images N] [--model resnet50|resnet18-cifar] [--precision P,P] [--repeats N] [--json]: validates
/// and times the convolutions of a residual network's training pass with every provider. Providers take turns, so that
/// the ratios are also valid on a shared machine.
namespace mylos::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;
using nn::ConvolutionProducts;

void add(std::vector<ConvolutionProducts>& layers, const std::string& name, const ConvolutionShape& shape,
         std::size_t count) {
  if (count > 0) layers.push_back({.name = name, .shape = shape, .count = count});
}

ConvolutionShape square(std::size_t size, std::size_t in, std::size_t out, std::size_t kernel, std::size_t stride) {
  return {size, size, in, out, kernel, kernel, stride, kernel / 2};
}

/// ResNet-50 on images of 224 x 224, with the stride in the 3 x 3 convolutions.
std::vector<ConvolutionProducts> resnet50() {
  std::vector<ConvolutionProducts> layers;
  add(layers, "stem", square(224, 3, 64, 7, 2), 1);
  layers.back().needs_input_gradient = false;
  const std::size_t depths[] = {3, 4, 6, 3};
  std::size_t size = 56, in = 64;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const std::size_t inner = std::size_t{64} << stage, out = 4 * inner, stride = stage == 0 ? 1 : 2;
    const std::string name = fmt::format("stage{}/", stage + 1);
    add(layers, name + "first-reduce", square(size, in, inner, 1, 1), 1);
    add(layers, name + "first-3x3", square(size, inner, inner, 3, stride), 1);
    add(layers, name + "shortcut", square(size, in, out, 1, stride), 1);
    size /= stride;
    add(layers, name + "expand", square(size, inner, out, 1, 1), depths[stage]);
    add(layers, name + "reduce", square(size, out, inner, 1, 1), depths[stage] - 1);
    add(layers, name + "3x3", square(size, inner, inner, 3, 1), depths[stage] - 1);
    in = out;
  }
  return layers;
}

/// ResNet-18 on images of 32 x 32, with a first convolution of 3 x 3 and no pooling.
std::vector<ConvolutionProducts> resnet18_cifar() {
  std::vector<ConvolutionProducts> layers;
  add(layers, "stem", square(32, 3, 64, 3, 1), 1);
  layers.back().needs_input_gradient = false;
  std::size_t size = 32, in = 64;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const std::size_t out = std::size_t{64} << stage, stride = stage == 0 ? 1 : 2;
    const std::string name = fmt::format("stage{}/", stage + 1);
    if (stride > 1) {
      add(layers, name + "first-3x3", square(size, in, out, 3, stride), 1);
      add(layers, name + "shortcut", square(size, in, out, 1, stride), 1);
    }
    size /= stride;
    add(layers, name + "3x3", square(size, out, out, 3, 1), stride > 1 ? 3 : 4);
    in = out;
  }
  return layers;
}

std::vector<ConvolutionProducts> layers_of(const std::string& model) {
  if (model == "resnet50") return resnet50();
  if (model == "resnet18-cifar") return resnet18_cifar();
  throw UsageError(fmt::format("--model {}: expected resnet50 or resnet18-cifar", model));
}

/// Returns the operations per second in the shortest time, because other load on the machine only adds to times.
double best_rate(const app::ProductRates& rates, std::size_t provider) {
  return std::ranges::max(rates.rates[provider]);
}

std::size_t fastest_of(const app::ProductRates& rates) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < rates.rates.size(); ++i) {
    if (best_rate(rates, i) > best_rate(rates, best)) best = i;
  }
  return best;
}

OrderedJson row_of(const app::ProductRates& rates, const std::vector<std::string>& providers) {
  OrderedJson row{{"convolution", rates.product.name},
                  {"count", rates.product.count},
                  {"precision", to_string(rates.product.input)},
                  {"gflop", 1e-9 * rates.product.flops()}};
  for (std::size_t i = 0; i < providers.size(); ++i) row["gflops"][providers[i]] = 1e-9 * best_rate(rates, i);
  row["fastest"] = providers[fastest_of(rates)];
  return row;
}

void print_row(const OrderedJson& row) {
  std::string line = fmt::format("{:34} x{} {:9} {:8.2f} GFLOP", row["convolution"].get<std::string>(),
                                 row["count"].dump(), row["precision"].get<std::string>(), row["gflop"].get<double>());
  for (const auto& [provider, rate] : row["gflops"].items()) {
    line += fmt::format("  {} {:6.1f}", provider, rate.get<double>());
  }
  print(line + "\n");
}

/// Returns the images per second over all convolutions of a pass, with each provider and with the fastest one for each
/// convolution.
OrderedJson images_per_second(const std::vector<app::ProductRates>& all, const std::vector<std::string>& providers,
                              std::size_t images) {
  double flops = 0.0;
  for (const app::ProductRates& one : all) flops += static_cast<double>(one.product.count) * one.product.flops();
  const auto of = [&](double rate) { return static_cast<double>(images) * rate / flops; };
  OrderedJson rates;
  for (std::size_t i = 0; i < providers.size(); ++i) {
    rates[providers[i]] =
        of(app::combined_rate(all, [i](const app::ProductRates& each) { return best_rate(each, i); }));
  }
  rates["fastest of each"] =
      of(app::combined_rate(all, [](const app::ProductRates& each) { return best_rate(each, fastest_of(each)); }));
  return rates;
}

void run(int argc, char** argv) {
  const Options options(argc, argv, {"images", "model", "precision", "repeats"});
  const std::string model = options.text("model", "resnet50");
  const std::vector<ConvolutionProducts> layers = layers_of(model);
  const std::size_t images = options.count("images", 32), repeats = options.count("repeats", 5);
  const std::vector<Precision> precisions = options.precisions({Precision::float32});
  const app::ComputeScope compute;
  if (!options.json()) app::print_bench_context();
  app::ProductTimer timer(exact_gemm_providers());
  OrderedJson rows = OrderedJson::array(), totals = OrderedJson::array();
  for (const Precision precision : precisions) {
    app::check_precision(precision, false);
    std::vector<app::ProductRates> all;
    for (ConvolutionProducts layer : layers) {
      layer.precision = precision;
      for (const GemmProduct& product : nn::convolution_products(layer, images, ParameterStore::Purpose::training)) {
        timer.time(product, repeats, all.emplace_back());
        rows.push_back(row_of(all.back(), timer.providers()));
        if (!options.json()) print_row(rows.back());
      }
    }
    totals.push_back({{"precision", to_string(precision)},
                      {"images_per_second", images_per_second(all, timer.providers(), images)}});
    if (!options.json()) print(totals.back().dump() + "\n");
  }
  if (!options.json()) return;
  print(OrderedJson{{"context", app::bench_context()},
                    {"model", model},
                    {"images", images},
                    {"convolutions", rows},
                    {"passes", totals}}
            .dump(2) +
        "\n");
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  mylos::restart_with_openblas_kernels(argv);
  return mylos::bench::run_program("bench_convolution", [&] { mylos::bench::run(argc, argv); });
}
