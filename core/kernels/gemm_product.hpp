#pragma once

#include "core/numeric.hpp"

#include <cstddef>
#include <string>

/// What a matrix product is, without its operands.
namespace mylos {

enum class Transpose { no, yes };

/// What is done to C's elements before they are written. A provider without it runs the same kernel afterwards.
enum class EpilogueKind {
  none,
  bias,           ///< c += bias[column]
  bias_gelu,      ///< pre = c + bias[column], kept; c = gelu(pre)
  gelu_gradient,  ///< c *= gelu'(pre)
};

/// C (m, n) = op(A) op(B), with a sum of k terms, as a model lists what it multiplies.
struct GemmProduct {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;  ///< of A and B; of C
  bool accumulate = false;                                            ///< C += instead of C =
  EpilogueKind epilogue = EpilogueKind::none;
  std::size_t count = 1;  ///< how often a pass has it
  std::string name = {};  ///< "qkv/forward"

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

}  // namespace mylos
