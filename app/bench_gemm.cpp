#include "app/bench.hpp"
#include "app/compute.hpp"
#include "app/gemm_timing.hpp"
#include "app/model_argument.hpp"
#include "app/standard_output.hpp"
#include "data/bert_config.hpp"

#include <fmt/format.h>

namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

struct LayerShape {
  std::string name;
  std::size_t hidden = 0, feed_forward = 0;
};

LayerShape layer_shape(Arguments arguments) {
  if (arguments.model.empty()) {
    for (const LayerShape& shape :
         {LayerShape{"bert-base", 768, 3072}, LayerShape{"bert-large", 1024, 4096}, LayerShape{"minilm", 384, 1536}}) {
      if (shape.name == arguments.shapes) return shape;
    }
  }
  resolve_model_argument(arguments);
  const data::BertConfig config = data::read_bert_config(arguments.run.squad.model / "config.json");
  return {arguments.model, config.hidden_size, config.intermediate_size};
}

Json measure(const Arguments& arguments, const std::string& provider, const Product& product) {
  const double seconds = time_product(provider, product, arguments.run.engine.precision, arguments.repeats);
  return {{"product", product.name},
          {"m", product.m},
          {"n", product.n},
          {"k", product.k},
          {"precision", to_string(arguments.run.engine.precision)},
          {"provider", provider},
          {"seconds", seconds},
          {"gflops", 1e-9 * product.flops() / seconds}};
}

void print_measurement(const Json& row) {
  print(fmt::format("{:34} {:>6} {:>6} {:>6}  {:9} {:15} {:10.3f} ms {:9.1f} GFLOP/s\n",
                    row["product"].get<std::string>(), row["m"].dump(), row["n"].dump(), row["k"].dump(),
                    row["precision"].get<std::string>(), row["provider"].get<std::string>(),
                    1e3 * row["seconds"].get<double>(), row["gflops"].get<double>()));
}

}  // namespace

int bench_gemm(const Arguments& arguments) {
  const LayerShape shape = layer_shape(arguments);
  const ComputeScope compute;
  const std::vector<std::string> providers = arguments.providers.empty() ? gemm_providers() : arguments.providers;
  Json rows = Json::array();
  if (!arguments.json) {
    print_bench_context();
    print(fmt::format("gemm: products of a layer of {}, {} tokens; m, n, k; the median of {}\n", shape.name,
                      arguments.tokens, arguments.repeats));
  }
  for (const Product& product : layer_products(arguments.tokens, shape.hidden, shape.feed_forward)) {
    for (const std::string& provider : providers) {
      rows.push_back(measure(arguments, provider, product));
      if (!arguments.json) print_measurement(rows.back());
    }
  }
  if (arguments.json)
    print(Json{{"context", bench_context()}, {"model", shape.name}, {"products", rows}}.dump(2) + "\n");
  return 0;
}

}  // namespace mylos::app
