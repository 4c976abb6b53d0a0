#include "core/kernels/products/gemm_provider.hpp"

#include "core/kernels/activation.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <algorithm>

namespace mylos {
namespace {

template <class T>
ConstVector<T> flat(const void* data, std::size_t size) {
  return ConstVector<T>(static_cast<const T*>(data), size);
}

template <class T>
Matrix<T> matrix(void* data, const GemmCall& call) {
  return Matrix<T>(static_cast<T*>(data), call.m, call.n);
}

template <class T>
void apply(const ExecutionSpace& space, const GemmCall& call) {
  switch (call.epilogue) {
    case EpilogueKind::none:
      return;
    case EpilogueKind::bias:
      return add_bias<T>(space, flat<T>(call.bias, call.n), matrix<T>(call.c, call));
    case EpilogueKind::bias_gelu:
      return bias_gelu<T>(space, flat<T>(call.bias, call.n), matrix<T>(call.pre, call), matrix<T>(call.c, call));
  }
}

const float* widened(const ExecutionSpace& space, Precision precision, const void* from, std::size_t size,
                     GemmWorkspace& workspace) {
  auto* const to = static_cast<float*>(workspace.get(size * sizeof(float)));
  with_type(precision, [&]<class T>(T) { convert<T, float>(space, flat<T>(from, size), Vector<float>(to, size)); });
  return to;
}

/// to = narrowed(from + beta to).
template <class T>
void narrow_product(const ExecutionSpace& space, const float* from, float beta, T* to, std::size_t size) {
  if (beta == 0.0f) return convert<float, T>(space, flat<float>(from, size), Vector<T>(to, size));
  for_each_element(
      with_work("mylos::gemm::accumulate", work_of(size, 2.0, sizeof(float) + 2.0 * sizeof(T))), space, size,
      KOKKOS_LAMBDA(std::size_t i) { to[i] = T(from[i] + beta * float(to[i])); });
}

}  // namespace

void* GemmWorkspace::get(std::size_t bytes) {
  if (bytes > memory_.size()) {
    memory_ = {};  // free the old memory first, so that both never exist at once
    memory_ = uninitialized<std::byte>("mylos::gemm::workspace", bytes + bytes / 4);
  }
  return memory_.data();
}

GemmCall FloatOperands::widen(const ExecutionSpace& space, const GemmCall& call) {
  GemmCall product = call;
  product.a = widened(space, call.input, call.a, call.m * call.k, a_);
  product.b = widened(space, call.input, call.b, call.k * call.n, b_);
  product.input = product.output = Precision::float32;
  product.epilogue = EpilogueKind::none;
  product.c = product_target(call);
  if (call.output != Precision::float32) {
    product.c = c_.get(call.m * call.n * sizeof(float));
    product.beta = 0.0f;
  }
  return product;
}

void FloatOperands::narrow(const ExecutionSpace& space, const GemmCall& call, const GemmCall& product) {
  if (call.output != Precision::float32) {
    with_type(call.output, [&]<class T>(T) {
      narrow_product(space, static_cast<const float*>(product.c), call.beta, static_cast<T*>(product_target(call)),
                     call.m * call.n);
    });
  }
  apply_epilogue(space, call);
}

std::size_t FloatOperands::bytes(std::span<const GemmProduct> products) {
  std::size_t a = 0, b = 0, c = 0;
  for (const GemmProduct& product : products) {
    if (product.input == Precision::float32 || product.convolution) continue;
    a = std::max(a, product.m * product.k);
    b = std::max(b, product.k * product.n);
    if (product.output != Precision::float32) c = std::max(c, product.m * product.n);
  }
  return (a + b + c) * sizeof(float);
}

void apply_epilogue(const ExecutionSpace& space, const GemmCall& call) {
  with_type(call.output, [&]<class T>(T) { apply<T>(space, call); });
}

}  // namespace mylos
