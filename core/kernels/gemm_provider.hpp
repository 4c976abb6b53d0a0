#pragma once

#include "core/element_type.hpp"
#include "core/kernels/gemm.hpp"

/// What a provider's file is written with; callers of products need gemm.hpp only.
namespace mylos {

/// A provider's file defines one of these, named <provider>_gemm; core/CMakeLists.txt lists which are built.
struct GemmProviderEntry {
  std::string_view name;
  std::unique_ptr<GemmProvider> (*make)();
  bool rounds_float = false;  ///< float operands lose bits in it, those that TF32 has not
  /// Why it cannot be used on this machine, in one line that says what to change; empty where it can. Null where it
  /// always can.
  std::string (*obstacle)() = nullptr;
  bool convolutions_only = false;  ///< all else is computed by the default provider
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

/// Where element `index` of an operand stands.
inline const void* element_of(const void* operand, std::size_t index, Precision precision) {
  return static_cast<const std::byte*>(operand) + index * bytes_of(precision);
}
inline void* element_of(void* operand, std::size_t index, Precision precision) {
  return static_cast<std::byte*>(operand) + index * bytes_of(precision);
}

inline std::size_t rows_of_a(const GemmCall& call) { return call.transpose_a == Transpose::no ? call.m : call.k; }
inline std::size_t rows_of_b(const GemmCall& call) { return call.transpose_b == Transpose::no ? call.k : call.n; }

/// Device memory that grows beyond the largest size asked for, by a quarter, and stays: what libraries ask for is not
/// monotonic in the shape.
class GemmWorkspace {
 public:
  /// At least `bytes`, not filled; valid until more is asked for.
  void* get(std::size_t bytes);

 private:
  Vector<std::byte> memory_;
};

/// Does in float what a provider cannot do in 16 bits: converts A and B, multiplies, and converts back with the
/// epilogue.
class FloatOperands {
 public:
  /// Writes A and B in float and returns the float product to be computed, whose epilogue is none. Where the call's
  /// output is float, the product goes straight to it.
  GemmCall widen(const ExecutionSpace& space, const GemmCall& call);
  /// After the product: c = narrowed(product + beta c) where the output has 16 bits, and the epilogue in any case.
  void narrow(const ExecutionSpace& space, const GemmCall& call, const GemmCall& product);

  /// Bytes of its copies when it has seen all of these products that are not in float, without the convolutions.
  static std::size_t bytes(std::span<const GemmProduct> products);

 private:
  GemmWorkspace a_, b_, c_;
};

/// The call's epilogue on a product that stands in `pre` for bias_gelu, and in C for the others.
void apply_epilogue(const ExecutionSpace& space, const GemmCall& call);

/// Where a product without an epilogue has to go so that apply_epilogue finds it.
inline void* product_target(const GemmCall& call) {
  return call.epilogue == EpilogueKind::bias_gelu ? call.pre : call.c;
}

}  // namespace mylos
