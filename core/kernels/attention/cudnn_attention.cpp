#include "core/kernels/attention/cudnn_attention.hpp"

#include "core/base/error.hpp"

/// Stubs for builds without attention by cuDNN.
namespace mylos::attention {

const bool has_cudnn_attention = false;

namespace {

constexpr const char* missing = "attention: this build has no attention by cuDNN";

}  // namespace

std::string cudnn_attention_obstacle() { return missing; }
std::string cudnn_attention_obstacle(const GpuArchitecture&) { return missing; }

void prepare_cudnn(const ExecutionSpace&, const AttentionShape&, Precision, std::size_t, std::size_t, bool) {
  fail(missing);
}

template <class T>
void cudnn_forward(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, const DropoutKey&,
                   const ConstMatrix<T>&, const Matrix<T>&, const Matrix<float>&) {
  fail(missing);
}

template <class T>
void cudnn_backward(const ExecutionSpace&, const AttentionShape&, const PackedSequences&, const DropoutKey&,
                    const ConstMatrix<T>&, const ConstMatrix<T>&, const ConstMatrix<float>&, const ConstMatrix<T>&,
                    const Matrix<T>&) {
  fail(missing);
}

#define MYLOS_INSTANTIATE(T)                                                                                        \
  template void cudnn_forward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,              \
                                 const DropoutKey&, const ConstMatrix<T>&, const Matrix<T>&, const Matrix<float>&); \
  template void cudnn_backward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,             \
                                  const DropoutKey&, const ConstMatrix<T>&, const ConstMatrix<T>&,                  \
                                  const ConstMatrix<float>&, const ConstMatrix<T>&, const Matrix<T>&);
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::attention
