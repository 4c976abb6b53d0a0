#pragma once

#include "core/kernels/gemm_product.hpp"

#include <functional>

/// Single elements of products, summed in double: what timed products are checked with.
namespace mylos::app {

/// The value of an operand's element, row-major.
using ElementOf = std::function<double(std::size_t index)>;

/// Columns of C.
std::size_t result_columns(const GemmProduct& product);
/// Terms of the sum of an element of C, the most that one has.
std::size_t terms_of(const GemmProduct& product);

/// Element (row, column) of op(A) op(B), or of the convolution of its operands.
double product_element(const GemmProduct& product, std::size_t row, std::size_t column, const ElementOf& a,
                       const ElementOf& b);

}  // namespace mylos::app
