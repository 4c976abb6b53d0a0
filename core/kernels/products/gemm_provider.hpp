#pragma once

#include "core/element_type.hpp"
#include "core/kernels/products/gemm.hpp"

/// The interface for provider files; callers of products need only gemm.hpp.
namespace mylos {

/// Each provider's file defines an entry named <provider>_gemm; core/kernels/CMakeLists.txt lists the providers in a
/// build.
struct GemmProviderEntry {
  std::string_view name;
  std::unique_ptr<GemmProvider> (*make)();
  bool rounds_float = false;  ///< rounds float operands to TF32
  /// Returns the reason why it cannot be used on this machine, in one line that says what to change; empty if it can.
  /// Null if it always can.
  std::string (*obstacle)() = nullptr;
  bool convolutions_only = false;  ///< the default provider computes all other products
  bool untried = false;            ///< has never run on a device, so that each run proves its products
};

inline GemmProduct product_of(const GemmCall& call) {
  return {.transpose_a = call.transpose_a,
          .transpose_b = call.transpose_b,
          .m = call.m,
          .n = call.n,
          .k = call.k,
          .input = call.input,
          .output = call.output,
          .accumulate = call.beta != 0.0f,
          .epilogue = call.epilogue,
          .convolution = call.convolution};
}

/// Returns the address of element `index` of an operand.
inline const void* element_of(const void* operand, std::size_t index, Precision precision) {
  return static_cast<const std::byte*>(operand) + index * bytes_of(precision);
}
inline void* element_of(void* operand, std::size_t index, Precision precision) {
  return static_cast<std::byte*>(operand) + index * bytes_of(precision);
}

inline std::size_t rows_of_a(const GemmCall& call) { return call.transpose_a == Transpose::no ? call.m : call.k; }
inline std::size_t rows_of_b(const GemmCall& call) { return call.transpose_b == Transpose::no ? call.k : call.n; }

/// Device memory that grows to a quarter more than the largest request, and is kept: the requests of libraries are not
/// monotonic in the shape.
class GemmWorkspace {
 public:
  /// Returns at least `bytes`, uninitialized; valid until a larger request.
  void* get(std::size_t bytes);

 private:
  Vector<std::byte> memory_;
};

/// Computes 16-bit products in float for providers that do not support them: converts A and B, multiplies, converts
/// back and applies the epilogue.
class FloatOperands {
 public:
  /// Converts A and B to float and returns the float product to compute, without an epilogue. If the call's output is
  /// float, the product is written to it directly.
  GemmCall widen(const ExecutionSpace& space, const GemmCall& call);
  /// Finishes the call after the product: c = narrowed(product + beta c) if the output has 16 bits, and the epilogue in
  /// any case.
  void narrow(const ExecutionSpace& space, const GemmCall& call, const GemmCall& product);

  /// Returns the bytes of the float copies after all 16-bit products among `products`, except convolutions.
  static std::size_t bytes(std::span<const GemmProduct> products);

 private:
  GemmWorkspace a_, b_, c_;
};

/// Applies the call's epilogue to a product stored in `pre` for bias_gelu, and in C for the others.
void apply_epilogue(const ExecutionSpace& space, const GemmCall& call);

/// Returns the address for a product without an epilogue, as apply_epilogue expects it.
inline void* product_target(const GemmCall& call) {
  return call.epilogue == EpilogueKind::bias_gelu ? call.pre : call.c;
}

}  // namespace mylos
