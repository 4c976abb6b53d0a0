#pragma once

#include "core/kernels/products/gemm.hpp"
#include "core/work.hpp"

#include <optional>
#include <string>
#include <string_view>

/// The name of a product in Kokkos Tools: the product is enclosed in a profiling region whose name gives its shape,
/// types, epilogue and provider. Without it, tools would not see products, because libraries launch no Kokkos kernels.
namespace mylos {

/// The product described by a region's name.
struct GemmLabel {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;
  EpilogueKind epilogue = EpilogueKind::none;
  bool accumulates = false;  ///< beta is 1
  std::string provider = {};
  std::optional<Convolution> convolution = {};

  bool operator==(const GemmLabel&) const = default;
};

/// Formats a label as "mylos::gemm NT 1400 1152 384 bfloat16 bfloat16 bias = onednn"; "+=" if the product is added to
/// C. A convolution of 32 images of 56 x 56 x 64 to 128 channels with 3 x 3 kernels, stride 2 and padding 1 is
/// "mylos::convolution forward 32 56 56 64 128 3 3 2 1 float float = onednn".
std::string to_string(const GemmLabel& label);
/// Parses a region's name; nullopt if it is not that of a product.
std::optional<GemmLabel> parse_gemm_label(std::string_view name);

/// Returns the work of the product itself, without other kernels that providers launch.
Work product_work(const GemmLabel& product);

/// Reports a product to Kokkos Tools from construction to destruction; does nothing if no tool is loaded.
class GemmRegion {
 public:
  GemmRegion(const GemmCall& call, std::string_view provider);
  ~GemmRegion();
  GemmRegion(const GemmRegion&) = delete;
  GemmRegion& operator=(const GemmRegion&) = delete;

 private:
  bool is_shown_;
};

}  // namespace mylos
