#pragma once

#include "core/kernels/products/gemm_product.hpp"

#include <functional>

/// Computes single elements of products, with sums in double, to check timed products.
namespace mylos::app {

/// Returns the value of an operand's element; `index` is row-major.
using ElementOf = std::function<double(std::size_t index)>;

/// Returns the number of columns of C.
std::size_t result_columns(const GemmProduct& product);
/// Returns the number of terms in the sum for an element of C; for convolutions, the largest number.
std::size_t terms_of(const GemmProduct& product);

/// Returns element (row, column) of op(A) op(B), or of the convolution of its operands.
double product_element(const GemmProduct& product, std::size_t row, std::size_t column, const ElementOf& a,
                       const ElementOf& b);

}  // namespace mylos::app
