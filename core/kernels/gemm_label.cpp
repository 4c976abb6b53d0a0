#include "core/kernels/gemm_label.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace mylos {
namespace {

constexpr std::string_view prefix = "mylos::gemm";
constexpr std::array precisions = {Precision::float32, Precision::bfloat16, Precision::float16};
constexpr std::array<std::string_view, 4> epilogues = {"none", "bias", "bias_gelu", "gelu_gradient"};

char letter(Transpose transpose) { return transpose == Transpose::no ? 'N' : 'T'; }

std::optional<Transpose> transpose_of(char letter) {
  if (letter == 'N') return Transpose::no;
  if (letter == 'T') return Transpose::yes;
  return std::nullopt;
}

std::optional<Precision> precision_called(std::string_view name) {
  const auto found = std::ranges::find(precisions, name, [](Precision each) { return to_string(each); });
  return found == precisions.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::string to_string(const GemmLabel& label) {
  return fmt::format("{} {}{} {} {} {} {} {} {} {} {}", prefix, letter(label.transpose_a), letter(label.transpose_b),
                     label.m, label.n, label.k, to_string(label.input), to_string(label.output),
                     epilogues[static_cast<std::size_t>(label.epilogue)], label.accumulates ? "+=" : "=",
                     label.provider);
}

std::optional<GemmLabel> parse_gemm_label(std::string_view name) {
  std::istringstream words{std::string(name)};
  std::string first, letters, input, output, epilogue, assignment;
  GemmLabel label;
  words >> first >> letters >> label.m >> label.n >> label.k >> input >> output >> epilogue >> assignment;
  if (!(words >> label.provider) || first != prefix || letters.size() != 2) return std::nullopt;
  const auto a = transpose_of(letters[0]), b = transpose_of(letters[1]);
  const auto in = precision_called(input), out = precision_called(output);
  const auto kind = std::ranges::find(epilogues, epilogue);
  label.accumulates = assignment == "+=";
  if (!a || !b || !in || !out || kind == epilogues.end() || (!label.accumulates && assignment != "=")) {
    return std::nullopt;
  }
  label.transpose_a = *a;
  label.transpose_b = *b;
  label.input = *in;
  label.output = *out;
  label.epilogue = static_cast<EpilogueKind>(kind - epilogues.begin());
  return label;
}

Work product_work(const GemmLabel& product) {
  const std::size_t m = product.m, n = product.n, k = product.k;
  const auto input = static_cast<double>(bytes_of(product.input)),
             output = static_cast<double>(bytes_of(product.output));
  return work_of(m * n, 2.0 * static_cast<double>(k), (product.accumulates ? 2.0 : 1.0) * output) +
         work_of(m * k + k * n, 0.0, input);
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
                                                    .provider = std::string(provider)}));
}

GemmRegion::~GemmRegion() {
  if (is_shown_) Kokkos::Profiling::popRegion();
}

}  // namespace mylos
