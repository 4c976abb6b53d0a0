#include "core/kernels/products/gemm_label.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace mylos {
namespace {

constexpr std::string_view prefix = "mylos::gemm";
constexpr std::string_view convolution_prefix = "mylos::convolution";
constexpr std::array<std::string_view, 3> passes = {"forward", "input_gradient", "weight_gradient"};
constexpr std::array<std::string_view, 3> epilogues = {"none", "bias", "bias_gelu"};

template <class Enum>
std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

/// Reads the next word and returns the value with this name among `names`; nullopt if there is none.
template <class Enum, class Names>
std::optional<Enum> read_name(std::istream& words, const Names& names) {
  std::string word;
  words >> word;
  const auto found = std::ranges::find(names, word);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

char letter(Transpose transpose) { return transpose == Transpose::no ? 'N' : 'T'; }

std::optional<Transpose> transpose_of(char letter) {
  if (letter == 'N') return Transpose::no;
  if (letter == 'T') return Transpose::yes;
  return std::nullopt;
}

GemmProduct product_of(const GemmLabel& label) {
  return {.transpose_a = label.transpose_a,
          .transpose_b = label.transpose_b,
          .m = label.m,
          .n = label.n,
          .k = label.k,
          .input = label.input,
          .output = label.output,
          .convolution = label.convolution};
}

/// Reads the sizes that follow the prefix of a product.
std::optional<GemmLabel> parse_sizes(std::istream& words) {
  std::string letters;
  GemmLabel label;
  words >> letters >> label.m >> label.n >> label.k;
  if (!words || letters.size() != 2) return std::nullopt;
  const auto a = transpose_of(letters[0]), b = transpose_of(letters[1]);
  if (!a || !b) return std::nullopt;
  label.transpose_a = *a;
  label.transpose_b = *b;
  return label;
}

/// Reads the sizes that follow the prefix of a convolution.
std::optional<GemmLabel> parse_convolution(std::istream& words) {
  const auto pass = read_name<ConvolutionPass>(words, passes);
  if (!pass) return std::nullopt;
  std::size_t images = 0;
  ConvolutionShape shape;
  words >> images >> shape.height >> shape.width >> shape.in >> shape.out >> shape.kernel_height >>
      shape.kernel_width >> shape.stride >> shape.padding;
  if (!words || shape.stride == 0) return std::nullopt;
  const GemmProduct product = convolution_product({shape, *pass}, images, Precision::float32);
  return GemmLabel{.transpose_a = product.transpose_a,
                   .transpose_b = product.transpose_b,
                   .m = product.m,
                   .n = product.n,
                   .k = product.k,
                   .convolution = product.convolution};
}

bool parse_types(std::istream& words, GemmLabel& label) {
  std::string input, output;
  words >> input >> output;
  const auto in = parse_precision(input), out = parse_precision(output);
  if (!in || !out) return false;
  label.input = *in;
  label.output = *out;
  return true;
}

bool parse_epilogue(std::istream& words, GemmLabel& label) {
  const auto kind = read_name<EpilogueKind>(words, epilogues);
  if (kind) label.epilogue = *kind;
  return kind.has_value();
}

bool parse_provider(std::istream& words, GemmLabel& label) {
  std::string assignment;
  words >> assignment >> label.provider;
  label.accumulates = assignment == "+=";
  return words && (label.accumulates || assignment == "=");
}

}  // namespace

std::string to_string(const GemmLabel& label) {
  const std::string types = fmt::format("{} {} ", to_string(label.input), to_string(label.output));
  const std::string assignment = fmt::format("{} {}", label.accumulates ? "+=" : "=", label.provider);
  if (label.convolution) {
    const auto& [shape, pass] = *label.convolution;
    const std::size_t images = batch_extent(product_of(label));
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}{}", convolution_prefix, passes[index_of(pass)], images,
                       shape.height, shape.width, shape.in, shape.out, shape.kernel_height, shape.kernel_width,
                       shape.stride, shape.padding, types, assignment);
  }
  return fmt::format("{} {}{} {} {} {} {}{} {}", prefix, letter(label.transpose_a), letter(label.transpose_b), label.m,
                     label.n, label.k, types, epilogues[index_of(label.epilogue)], assignment);
}

std::optional<GemmLabel> parse_gemm_label(std::string_view name) {
  std::istringstream words{std::string(name)};
  std::string first;
  words >> first;
  std::optional<GemmLabel> label;
  if (first == prefix) label = parse_sizes(words);
  if (first == convolution_prefix) label = parse_convolution(words);
  if (!label || !parse_types(words, *label)) return std::nullopt;
  if (first == prefix && !parse_epilogue(words, *label)) return std::nullopt;
  return parse_provider(words, *label) ? label : std::nullopt;
}

Work product_work(const GemmLabel& label) {
  const GemmProduct product = product_of(label);
  const OperandSizes sizes = operand_sizes(product);
  const auto input = static_cast<double>(bytes_of(label.input)), output = static_cast<double>(bytes_of(label.output));
  return Work{product.flops(), 0.0} + work_of(sizes.c, 0.0, (label.accumulates ? 2.0 : 1.0) * output) +
         work_of(sizes.a + sizes.b, 0.0, input);
}

GemmRegion::GemmRegion(const GemmCall& call, std::string_view provider)
    : is_shown_(Kokkos::Profiling::profileLibraryLoaded()) {
  if (!is_shown_) return;
  Kokkos::Profiling::pushRegion(to_string(GemmLabel{.transpose_a = call.transpose_a,
                                                    .transpose_b = call.transpose_b,
                                                    .m = call.m,
                                                    .n = call.n,
                                                    .k = call.k,
                                                    .input = call.input,
                                                    .output = call.output,
                                                    .epilogue = call.epilogue,
                                                    .accumulates = call.beta != 0.0f,
                                                    .provider = std::string(provider),
                                                    .convolution = call.convolution}));
}

GemmRegion::~GemmRegion() {
  if (is_shown_) Kokkos::Profiling::popRegion();
}

}  // namespace mylos
