#include "core/kernels/gemm.hpp"

#include "core/base/error.hpp"
#include "core/kernels/float_convolution.hpp"
#include "core/kernels/gathered_convolution.hpp"
#include "core/kernels/gemm_label.hpp"
#include "core/kernels/gemm_provider.hpp"
#include "core/kernels/winograd_sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace mylos {

// MYLOS_GEMM_PROVIDERS is a list X(first) X(second) that core/CMakeLists.txt makes of the providers it builds.
#define X(provider) extern const GemmProviderEntry provider##_gemm;
MYLOS_GEMM_PROVIDERS
#undef X

namespace {

#define X(provider) &provider##_gemm,
const std::array providers = {MYLOS_GEMM_PROVIDERS};
#undef X

std::string obstacle_of(const GemmProviderEntry& entry) {
  return entry.obstacle == nullptr ? std::string() : entry.obstacle();
}

bool is_usable(const GemmProviderEntry& entry) { return obstacle_of(entry).empty(); }

template <class Predicate>
std::vector<std::string> names_of(const Predicate& is_wanted) {
  std::vector<std::string> names;
  for (const GemmProviderEntry* entry : providers) {
    if (is_wanted(*entry)) names.emplace_back(entry->name);
  }
  return names;
}

template <class T>
std::string shape(Transpose transpose, const ConstMatrix<T>& matrix) {
  return fmt::format("{} x {}{}", matrix.extent(0), matrix.extent(1), transpose == Transpose::yes ? " transposed" : "");
}

template <class In, class Out>
void check_shapes(const GemmCall& call, const ConstMatrix<In>& a, const ConstMatrix<In>& b, const Matrix<Out>& c) {
  const auto outer_a = call.transpose_a == Transpose::no ? a.extent(0) : a.extent(1);
  const auto inner_b = call.transpose_b == Transpose::no ? b.extent(0) : b.extent(1);
  const auto outer_b = call.transpose_b == Transpose::no ? b.extent(1) : b.extent(0);
  require(call.k > 0 && inner_b == call.k && outer_a == call.m && outer_b == call.n,
          fmt::format("product of {} and {} does not give {} x {}", shape(call.transpose_a, a),
                      shape(call.transpose_b, b), c.extent(0), c.extent(1)));
}

template <class Out>
void check_epilogue(const GemmCall& call, const Epilogue<Out>& epilogue) {
  const bool has_bias = call.epilogue == EpilogueKind::bias || call.epilogue == EpilogueKind::bias_gelu;
  const bool has_pre = call.epilogue == EpilogueKind::bias_gelu || call.epilogue == EpilogueKind::gelu_gradient;
  require(call.beta == 0.0f || (call.beta == 1.0f && call.epilogue == EpilogueKind::none),
          fmt::format("product with beta {}: it is 0, or 1 without an epilogue", call.beta));
  require(!has_bias || epilogue.bias.size() == call.n,
          fmt::format("product with {} columns: the bias has {} elements", call.n, epilogue.bias.size()));
  require(!has_pre || (epilogue.pre.extent(0) == call.m && epilogue.pre.extent(1) == call.n),
          fmt::format("product of {} x {}: the epilogue's pre is {} x {}", call.m, call.n, epilogue.pre.extent(0),
                      epilogue.pre.extent(1)));
}

}  // namespace

GemmCall call_of(const GemmProduct& product) {
  return {.transpose_a = product.transpose_a,
          .transpose_b = product.transpose_b,
          .m = product.m,
          .n = product.n,
          .k = product.k,
          .input = product.input,
          .output = product.output,
          .beta = product.accumulate ? 1.0f : 0.0f,
          .epilogue = product.epilogue,
          .convolution = product.convolution};
}

std::size_t widened_bytes(std::span<const GemmProduct> products) {
  return FloatOperands::bytes(products) + FloatConvolution::bytes(products);
}

std::size_t host_product_bytes(std::span<const GemmProduct> products, std::size_t threads) {
  if (products.empty()) return 0;
  // oneDNN's and OpenBLAS' blocks of the operands, measured: a few hundred columns of each at a time.
  constexpr std::size_t depth = 240, columns = 768, code = std::size_t{2} << 20;
  std::size_t widest = 0;
  std::vector<GemmProduct> of_float = FloatConvolution::widened(products);
  of_float.insert(of_float.end(), products.begin(), products.end());
  for (const GemmProduct& product : products) widest = std::max(widest, product.n);
  return code + threads * depth * (widest + columns) * sizeof(float) + GatheredConvolution::bytes(products) +
         winograd_bytes(of_float);
}

std::vector<std::string> built_gemm_providers() {
  return names_of([](const GemmProviderEntry&) { return true; });
}

std::vector<std::string> built_exact_gemm_providers() {
  return names_of([](const GemmProviderEntry& entry) { return !entry.rounds_float; });
}

std::string gemm_provider_obstacle(std::string_view name) {
  for (const GemmProviderEntry* entry : providers) {
    if (entry->name == name) return obstacle_of(*entry);
  }
  return {};
}

std::vector<std::string> gemm_providers() { return names_of(is_usable); }

std::vector<std::string> exact_gemm_providers() {
  return names_of([](const GemmProviderEntry& entry) { return !entry.rounds_float && is_usable(entry); });
}

std::vector<std::string> timed_gemm_providers(bool of_convolutions, bool on_host) {
  return names_of([&](const GemmProviderEntry& entry) {
    const bool is_candidate =
        entry.convolutions_only ? of_convolutions : on_host || entry.name == default_gemm_provider();
    return is_candidate && !entry.rounds_float && is_usable(entry);
  });
}

std::string tf32_gemm_provider() {
  for (const GemmProviderEntry* entry : providers) {
    if (entry->rounds_float) return std::string(entry->name);
  }
  return {};
}

std::string default_gemm_provider() { return std::string(providers.back()->name); }

std::unique_ptr<GemmProvider> make_gemm_provider(std::string_view name) {
  for (const GemmProviderEntry* entry : providers) {
    if (entry->name != name) continue;
    if (const std::string obstacle = obstacle_of(*entry); !obstacle.empty()) fail(obstacle);
    return entry->make();
  }
  fail(fmt::format("no GEMM provider \"{}\" in this build; there are: {}", name, fmt::join(gemm_providers(), ", ")));
}

Gemm::Gemm(GemmChoice choice) : choice_(std::move(choice)) {
  const auto take = [this](const std::string& name) {
    if (!providers_.contains(name)) providers_.emplace(name, make_gemm_provider(name));
  };
  take(choice_.fallback);
  for (const auto& [key, name] : choice_.products) take(name);
}

GemmProvider& Gemm::provider_for(const GemmProduct& product) const {
  if (choice_.products.empty()) return *providers_.begin()->second;
  return *providers_.find(provider_of(choice_, key_of(product)))->second;
}

std::size_t Gemm::workspace_bytes(std::span<const GemmProduct> products) const {
  std::map<GemmProvider*, std::vector<GemmProduct>> parts;
  for (const GemmProduct& product : products) parts[&provider_for(product)].push_back(product);
  std::size_t bytes = 0;
  for (const auto& [provider, part] : parts) bytes += provider->workspace_bytes(part);
  return bytes;
}

std::size_t Gemm::growth_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, provider] : providers_) bytes += provider->growth_bytes();
  return bytes;
}

void Gemm::multiply(const ExecutionSpace& space, const GemmCall& call) const {
  GemmProvider& provider = provider_for(product_of(call));
  const GemmRegion region(call, provider.name());
  provider.multiply(space, call);
}

template <class In, class Out>
void Gemm::operator()(const ExecutionSpace& space, Transpose transpose_a, const ConstMatrix<In>& a,
                      Transpose transpose_b, const ConstMatrix<In>& b, float beta, const Matrix<Out>& c,
                      const Epilogue<Out>& epilogue) const {
  GemmCall call{.transpose_a = transpose_a, .transpose_b = transpose_b};
  call.m = c.extent(0);
  call.n = c.extent(1);
  call.k = transpose_a == Transpose::no ? a.extent(1) : a.extent(0);
  call.input = precision_of<In>;
  call.output = precision_of<Out>;
  call.a = a.data();
  call.b = b.data();
  call.c = c.data();
  call.beta = beta;
  call.epilogue = epilogue.kind;
  call.bias = epilogue.bias.data();
  call.pre = epilogue.pre.data();
  check_shapes(call, a, b, c);
  check_epilogue(call, epilogue);
  if (call.m == 0 || call.n == 0) return;
  multiply(space, call);
}

#define MYLOS_INSTANTIATE(In, Out)                                                                                 \
  template void Gemm::operator()<In, Out>(const ExecutionSpace&, Transpose, const ConstMatrix<In>&, Transpose,     \
                                          const ConstMatrix<In>&, float, const Matrix<Out>&, const Epilogue<Out>&) \
      const;
MYLOS_INSTANTIATE(float, float)
MYLOS_INSTANTIATE(bfloat16, bfloat16)
MYLOS_INSTANTIATE(bfloat16, float)
MYLOS_INSTANTIATE(half, half)
MYLOS_INSTANTIATE(half, float)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
