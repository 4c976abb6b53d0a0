#pragma once

#include "core/kernels/gemm.hpp"
#include "core/kernels/work.hpp"

#include <optional>
#include <string>
#include <string_view>

/// The name under which a product is shown to Kokkos Tools: a profiling region around it that says its shape, types,
/// epilogue and provider. Libraries launch no Kokkos kernel that a tool could see.
namespace mylos {

/// What a region's name says of its product.
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

/// "mylos::gemm NT 1400 1152 384 bfloat16 bfloat16 bias = onednn"; "+=" where the product is added to C. Of a
/// convolution of 32 images of 56 x 56 x 64 to 128 channels by kernels of 3 x 3, with stride 2 and padding 1:
/// "mylos::convolution forward 32 56 56 64 128 3 3 2 1 float float = onednn".
std::string to_string(const GemmLabel& label);
/// The product that a region's name says; nothing where it is the name of another region.
std::optional<GemmLabel> parse_gemm_label(std::string_view name);

/// What the product itself does, without the kernels that providers launch beside it.
Work product_work(const GemmLabel& product);

/// Shows a product to the tools that listen, from construction to destruction; where none listens it does nothing.
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
