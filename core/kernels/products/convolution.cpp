#include "core/kernels/products/convolution.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

std::string to_string(const ConvolutionShape& shape) {
  return fmt::format("{} x {} kernels of {} x {} x {} to {} channels, stride {}, padding {}", shape.kernel_height,
                     shape.kernel_width, shape.height, shape.width, shape.in, shape.out, shape.stride, shape.padding);
}

/// Checks the arrays' extents. Errors: std::invalid_argument if they do not hold a whole number of images.
template <class X, class W, class Y>
void check(const ConvolutionShape& shape, const X& x, const W& weight, const Y& y) {
  require(shape.in > 0 && shape.out > 0 && shape.kernel_height > 0 && shape.kernel_width > 0 && shape.stride > 0 &&
              shape.height + 2 * shape.padding >= shape.kernel_height &&
              shape.width + 2 * shape.padding >= shape.kernel_width,
          fmt::format("convolution: {}: no kernel fits", to_string(shape)));
  const std::size_t images = y.extent(0) / shape.out_pixels();
  require(images * shape.out_pixels() == y.extent(0) && images * shape.pixels() == x.extent(0) &&
              x.extent(1) == shape.in && y.extent(1) == shape.out && weight.extent(0) == shape.out &&
              weight.extent(1) == shape.terms(),
          fmt::format("convolution: {}: {} x {} with {} x {} does not give {} x {}", to_string(shape), x.extent(0),
                      x.extent(1), weight.extent(0), weight.extent(1), y.extent(0), y.extent(1)));
}

template <class A, class B, class C>
void multiply(const ExecutionSpace& space, const Gemm& gemm, GemmCall call, const A& a, const B& b, const C& c) {
  if (call.m == 0 || call.n == 0) return;
  call.a = a.data();
  call.b = b.data();
  call.c = c.data();
  gemm.multiply(space, call);
}

}  // namespace

template <class T>
void convolve(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape, const ConstMatrix<T>& x,
              const ConstMatrix<T>& weight, const Matrix<T>& y) {
  check(shape, x, weight, y);
  const std::size_t images = y.extent(0) / shape.out_pixels();
  const GemmProduct product = convolution_product({shape, ConvolutionPass::forward}, images, precision_of<T>);
  multiply(space, gemm, call_of(product), x, weight, y);
}

template <class T>
void convolve_input_gradient(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape,
                             const ConstMatrix<T>& dy, const ConstMatrix<T>& weight, const Matrix<T>& dx) {
  check(shape, dx, weight, dy);
  const std::size_t images = dy.extent(0) / shape.out_pixels();
  const GemmProduct product = convolution_product({shape, ConvolutionPass::input_gradient}, images, precision_of<T>);
  multiply(space, gemm, call_of(product), dy, weight, dx);
}

template <class T>
void convolve_weight_gradient(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape,
                              const ConstMatrix<T>& x, const ConstMatrix<T>& dy, float beta,
                              const Matrix<float>& dweight) {
  check(shape, x, dweight, dy);
  require(beta == 0.0f || beta == 1.0f, fmt::format("convolution with beta {}: it is 0 or 1", beta));
  const std::size_t images = dy.extent(0) / shape.out_pixels();
  if (images == 0) {
    if (beta == 0.0f) Kokkos::deep_copy(space, dweight, 0.0f);
    return;
  }
  GemmCall call = call_of(convolution_product({shape, ConvolutionPass::weight_gradient}, images, precision_of<T>));
  call.beta = beta;
  multiply(space, gemm, call, dy, x, dweight);
}

#define MYLOS_INSTANTIATE(T)                                                                                    \
  template void convolve<T>(const ExecutionSpace&, const Gemm&, const ConvolutionShape&, const ConstMatrix<T>&, \
                            const ConstMatrix<T>&, const Matrix<T>&);                                           \
  template void convolve_input_gradient<T>(const ExecutionSpace&, const Gemm&, const ConvolutionShape&,         \
                                           const ConstMatrix<T>&, const ConstMatrix<T>&, const Matrix<T>&);     \
  template void convolve_weight_gradient<T>(const ExecutionSpace&, const Gemm&, const ConvolutionShape&,        \
                                            const ConstMatrix<T>&, const ConstMatrix<T>&, float,                \
                                            const Matrix<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
