#include "core/kernels/attention/tensor_core_attention.hpp"

#include "core/base/error.hpp"

/// Stubs for builds without tensor cores.
namespace mylos::attention {

const GpuArchitecture tensor_core_architecture = {};

namespace {

[[noreturn]] void fail_without() { fail("attention: this build has no kernels for tensor cores"); }

}  // namespace

template <class T>
void tensor_core_forward(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, const DropoutKey&,
                         const ConstMatrix<T>&, const Matrix<T>&, const Matrix<float>&) {
  fail_without();
}

template <class T>
void tensor_core_backward(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, const DropoutKey&,
                          const ConstMatrix<T>&, const ConstMatrix<T>&, const ConstMatrix<float>&,
                          const ConstMatrix<T>&, const Matrix<T>&, const Matrix<float>&) {
  fail_without();
}

MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(bfloat16)
MYLOS_INSTANTIATE_TENSOR_CORE_ATTENTION(half)

}  // namespace mylos::attention
