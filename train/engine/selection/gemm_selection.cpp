#include "train/engine/selection/gemm_selection.hpp"

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/kernels/products/gemm_measure.hpp"
#include "core/kernels/products/gemm_proof.hpp"
#include "parallel/communicator/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>

namespace mylos::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* transpositions[] = {"NN", "NT", "TN", "TT"};
constexpr const char* passes[] = {"forward", "input_gradient", "weight_gradient"};
constexpr Precision precisions[] = {Precision::float32, Precision::bfloat16, Precision::float16};

/// The smallest micro-batches that are measured have the largest one's rows divided by this.
constexpr std::size_t smallest_part = 8;

std::string transposition(const GemmKey& key) {
  const std::size_t a = key.transpose_a == Transpose::yes ? 2 : 0, b = key.transpose_b == Transpose::yes ? 1 : 0;
  return transpositions[a + b];
}

/// Returns the index in `names` of the name stored at `key`.
template <class Names, class NameOf>
std::size_t index_member(const Json& object, const char* key, const JsonLocation& location, const Names& names,
                         const NameOf& name_of) {
  const std::string& name = string_member(object, key, location);
  std::string known;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (name == name_of(names[i])) return i;
    known += fmt::format("{}{}", i == 0 ? "" : ", ", name_of(names[i]));
  }
  location.fail(fmt::format("{} \"{}\": expected one of {}", key, printable(name), known));
}

Precision precision_member(const Json& object, const char* key, const JsonLocation& location) {
  return precisions[index_member(object, key, location, precisions, [](Precision one) { return to_string(one); })];
}

/// Parses the shape and pass of a convolution as written by `to_json`.
Convolution parse_convolution(const Json& object, const JsonLocation& location) {
  const std::size_t pass =
      index_member(object, "pass", location, passes, [](const char* name) { return std::string_view(name); });
  const ConvolutionShape shape{count_member(object, "height", location),
                               count_member(object, "width", location),
                               count_member(object, "in", location),
                               count_member(object, "out", location),
                               count_member(object, "kernel_height", location),
                               count_member(object, "kernel_width", location),
                               count_member(object, "stride", location),
                               count_member(object, "padding", location)};
  if (shape.stride == 0) location.fail("stride 0: expected a positive number");
  return {shape, static_cast<ConvolutionPass>(pass)};
}

OrderedJson convolution_json(const Convolution& convolution) {
  const ConvolutionShape& shape = convolution.shape;
  return {{"pass", passes[static_cast<std::size_t>(convolution.pass)]},
          {"height", shape.height},
          {"width", shape.width},
          {"in", shape.in},
          {"out", shape.out},
          {"kernel_height", shape.kernel_height},
          {"kernel_width", shape.kernel_width},
          {"stride", shape.stride},
          {"padding", shape.padding}};
}

GemmKey parse_key(const Json& object, const JsonLocation& location) {
  const std::size_t transposed = index_member(object, "transpose", location, transpositions,
                                              [](const char* name) { return std::string_view(name); });
  GemmKey key{.transpose_a = transposed / 2 == 1 ? Transpose::yes : Transpose::no,
              .transpose_b = transposed % 2 == 1 ? Transpose::yes : Transpose::no,
              .input = precision_member(object, "input", location),
              .output = precision_member(object, "output", location),
              .n = count_member(object, "n", location),
              .k = count_member(object, "k", location),
              .rows = count_member(object, "rows", location)};
  if (!std::has_single_bit(key.rows)) location.fail(fmt::format("rows {}: expected a power of two", key.rows));
  if (const Json* convolution = find_member(object, "convolution", location)) {
    const JsonLocation its_location(location, "convolution");
    key.convolution = parse_convolution(as_object(*convolution, its_location), its_location);
  }
  return key;
}

OrderedJson product_json(const GemmKey& key, const std::string& provider) {
  OrderedJson product{
      {"transpose", transposition(key)}, {"n", key.n},      {"k", key.k}, {"input", to_string(key.input)},
      {"output", to_string(key.output)}, {"rows", key.rows}};
  if (key.convolution) product["convolution"] = convolution_json(*key.convolution);
  product["provider"] = provider;
  return product;
}

/// Time limits of measuring, in seconds. A convolutional network has dozens of different convolutions, a transformer a
/// handful of products.
constexpr double seconds_for_products = 1.0, seconds_for_convolutions = 4.0;

/// Narrower products, by rows or columns of weights, are little more than a pass over memory; the default provider
/// computes them.
constexpr std::size_t narrowest = 8;

bool is_narrow(const GemmKey& key) { return std::min(key.n, key.k) < narrowest; }

/// Returns whether several providers of this build are fast enough for such products to be timed.
bool is_timed(const GemmProduct& product) { return timed_gemm_providers(product.convolution.has_value()).size() > 1; }

}  // namespace

bool is_built(const GemmChoice& choice) {
  const std::vector<std::string> built = gemm_providers();
  const auto has = [&](const std::string& name) { return std::ranges::find(built, name) != built.end(); };
  return has(choice.fallback) &&
         std::ranges::all_of(choice.products, has, [](const auto& entry) { return entry.second; });
}

OrderedJson to_json(const GemmChoice& choice) {
  OrderedJson products = OrderedJson::array();
  for (const auto& [key, provider] : choice.products) products.push_back(product_json(key, provider));
  return {{"default", choice.fallback}, {"products", std::move(products)}};
}

GemmChoice parse_gemm_choice(const nlohmann::json& value, const std::string& name) {
  const JsonLocation root(name);
  GemmChoice choice{string_member(as_object(value, root), "default", root), {}};
  const JsonLocation list_location(root, "products");
  const Json& list = list_member(value, "products", root);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonLocation location(list_location, i);
    const Json& product = as_object(list[i], location);
    choice.products[parse_key(product, location)] = string_member(product, "provider", location);
  }
  return choice;
}

std::vector<GemmProduct> products_of_run(const nn::Model& model, const BatchShape& training,
                                         const BatchShape& evaluation) {
  std::vector<GemmProduct> all;
  const auto add = [&](BatchShape shape, ParameterStore::Purpose purpose) {
    for (std::size_t part = 1; shape.samples > 0 && part <= smallest_part && shape.rows > 0; part *= 2) {
      for (const GemmProduct& product : model.products(shape, purpose)) all.push_back(product);
      shape.rows /= 2;
    }
  };
  add(training, ParameterStore::Purpose::training);
  add(evaluation, ParameterStore::Purpose::inference);
  return all;
}

GemmCache::GemmCache(const std::filesystem::path& directory)
    : cache_(directory, "gemm", directory.empty() ? std::string() : timed_machine()) {}

GemmChoice GemmCache::read() const {
  const GemmChoice nothing{default_gemm_provider(), {}};
  const std::optional<Json> saved = cache_.read();
  if (!saved) return nothing;
  try {
    GemmChoice choice = parse_gemm_choice(*saved, "cache");
    return is_built(choice) ? choice : nothing;
  } catch (const std::runtime_error&) {
    return nothing;  // only a cache: measured again and rewritten
  }
}

void GemmCache::write(const GemmChoice& choice) const { cache_.write(to_json(choice)); }

GemmChoice select_gemm(const ExecutionSpace& space, const GemmConfig& config,
                       const std::vector<GemmProduct>& products) {
  if (config.tf32) {
    ensure(!tf32_gemm_provider().empty(), "matrix products: this build has no TF32");
    return {tf32_gemm_provider(), {}};
  }
  if (config.provider != GemmConfig::automatic) return {config.provider, {}};
  GemmChoice choice{default_gemm_provider(), {}};
  if (config.recorded) choice = *config.recorded;
  if (!config.is_timed) return choice;
  std::vector<GemmProduct> timed;
  std::ranges::copy_if(products, std::back_inserter(timed), is_timed);
  if (timed.empty()) return choice;

  const GemmCache cache(config.cache);
  GemmChoice known = cache.read();
  std::vector<GemmProduct> unknown;
  for (const GemmProduct& product : timed) {
    const GemmKey key = key_of(product);
    const auto found = known.products.find(key);
    if (is_narrow(key) || choice.products.contains(key)) continue;
    if (found == known.products.end()) {
      unknown.push_back(product);
    } else {
      choice.products.insert(*found);
    }
  }
  if (unknown.empty()) return choice;
  const bool has_convolutions =
      std::ranges::any_of(unknown, [](const GemmProduct& product) { return product.convolution.has_value(); });
  const GemmMeasurement measurement{.providers = timed_gemm_providers(has_convolutions),
                                    .fallback = choice.fallback,
                                    .seconds = has_convolutions ? seconds_for_convolutions : seconds_for_products};
  const GemmChoice measured = measure_gemm(space, measurement, unknown);
  choice.products.insert(measured.products.begin(), measured.products.end());
  // Products that were not measured in time get the fallback explicitly, so that a recorded choice is complete.
  for (const GemmProduct& product : unknown) choice.products.emplace(key_of(product), choice.fallback);
  known.products.insert(measured.products.begin(), measured.products.end());
  cache.write(known);
  return choice;
}

GemmChoice choose_gemm(parallel::Communicator& ranks, const ExecutionSpace& space, const GemmConfig& config,
                       const std::function<std::vector<GemmProduct>()>& products) {
  const GemmChoice choice = parallel::on_first_rank(ranks, [&] { return select_gemm(space, config, products()); });
  if (!is_untried_gemm_provider(choice.fallback)) return choice;
  const std::string fault = parallel::first_text(ranks, gemm_fault(space, choice.fallback, products()));
  if (fault.empty()) return choice;
  const std::string portable = gemm_providers().front();
  if (config.provider != GemmConfig::automatic) {
    const std::string change = fmt::format("use another version, or the slower {}", setting("gemm", portable));
    parallel::on_every_rank(ranks,
                            [&] { throw SettingError("gemm", config.provider, fmt::format("{}; {}", fault, change)); });
  }
  if (ranks.rank() == 0) {
    log_line(fmt::format("matrix products: {} is left out, and the slower {} computes them: {}", choice.fallback,
                         portable, fault));
  }
  return {portable, {}};
}

}  // namespace mylos::train
