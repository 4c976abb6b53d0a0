#pragma once

#include "core/device_functions.hpp"
#include "core/kernels/hip/mfma_16x16x16.hpp"
#include "core/numeric.hpp"

#include <cstring>
#include <type_traits>

/// The operations that matrix_tiles.hpp and the products of tiles need from a thread block, as instructions of AMD GPUs
/// with matrix cores: gfx90a and gfx942. cuda_block.hpp has those of NVIDIA's.
#if defined(KOKKOS_ENABLE_HIP)
namespace mylos::matrix {

struct HipBlock {
  using Mma = Mfma16x16x16;
  static constexpr bool limits_registers = false;
  /// A second buffer would leave room in the 64 KiB of shared memory for half as many blocks, and with heads of 128 for
  /// none. Copies do not run ahead anyway.
  static constexpr int buffers = 1;

  Octet* first;  ///< start of shared memory, aligned to tile_alignment octets

  MYLOS_BLOCK_FUNCTION int index() const { return static_cast<int>(blockIdx.x); }
  MYLOS_BLOCK_FUNCTION int thread() const { return static_cast<int>(threadIdx.x); }
  MYLOS_BLOCK_FUNCTION int lane() const { return static_cast<int>(threadIdx.x) % Mma::lanes; }
  /// One value for all threads of a warp, which the compiler keeps in a scalar register.
  MYLOS_BLOCK_FUNCTION int warp() const {
    return __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / Mma::lanes);
  }

  /// Makes the writes of each thread visible to the rest of the block or warp, whose threads run in lockstep: only the
  /// compiler could reorder its accesses.
  MYLOS_BLOCK_FUNCTION void sync() const { __syncthreads(); }
  MYLOS_BLOCK_FUNCTION void sync_warp() const {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
  }

  /// Shared memory, and the address of an octet in it for the functions below.
  MYLOS_BLOCK_FUNCTION Octet* shared() const { return first; }
  MYLOS_BLOCK_FUNCTION std::uint32_t address(int octet) const {
    return static_cast<std::uint32_t>(octet) * static_cast<std::uint32_t>(sizeof(Octet));
  }

  /// Returns `value` of thread `lane` of the warp, and of the thread whose number differs in the bits of `mask`.
  MYLOS_BLOCK_FUNCTION std::uint32_t shuffle(std::uint32_t value, int lane) const {
    return __shfl(value, lane, Mma::lanes);
  }
  MYLOS_BLOCK_FUNCTION float exchange(float value, int mask) const { return __shfl_xor(value, mask, Mma::lanes); }

  /// Returns 2^x to 2 units in the last place; 0 below the smallest normal number.
  MYLOS_BLOCK_FUNCTION float exp2(float x) const { return gpu::exp2(x); }

  /// Copy 16 and 4 bytes to shared memory, or zeros if not `is_there`. Other warps hide the time that they take.
  MYLOS_BLOCK_FUNCTION void copy(std::uint32_t to, const void* from, bool is_there) const {
    Words x{};
    if (is_there) x = *static_cast<const Words*>(from);
    at<Words>(to) = x;
  }
  MYLOS_BLOCK_FUNCTION void copy_word(std::uint32_t to, const void* from, bool is_there) const {
    at<std::uint32_t>(to) = is_there ? *static_cast<const std::uint32_t*>(from) : 0u;
  }
  MYLOS_BLOCK_FUNCTION void wait_for_copies() const {}

  /// Load eight adjacent elements, and two.
  MYLOS_BLOCK_FUNCTION void load_octet(std::uint32_t octet, std::uint32_t (&m)[4]) const {
    const Words x = at<Words>(octet);
    MYLOS_UNROLLED
    for (int i = 0; i < 4; ++i) m[i] = x[i];
  }
  MYLOS_BLOCK_FUNCTION std::uint32_t load_word(std::uint32_t word) const { return at<std::uint32_t>(word); }

  /// c += a b for fragments of T, given by four elements each; sums are float. gfx90a takes subnormal elements and
  /// sums for zeros.
  template <class T>
  MYLOS_BLOCK_FUNCTION void multiply_add(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b0,
                                         std::uint32_t b1) const {
    using Element = std::conditional_t<std::is_same_v<T, bfloat16>, short, _Float16>;
    using Operand = __attribute__((ext_vector_type(4))) Element;
    using Result = __attribute__((ext_vector_type(4))) float;
    const auto operand = [](std::uint32_t low, std::uint32_t high) {
      return __builtin_bit_cast(Operand, low | static_cast<std::uint64_t>(high) << 32);
    };
    Result sums{c[0], c[1], c[2], c[3]};
    if constexpr (std::is_same_v<T, bfloat16>) {
      sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(operand(a0, a1), operand(b0, b1), sums, 0, 0, 0);
    } else {
      static_assert(std::is_same_v<T, half>);
      sums = __builtin_amdgcn_mfma_f32_16x16x16f16(operand(a0, a1), operand(b0, b1), sums, 0, 0, 0);
    }
    MYLOS_UNROLLED
    for (int i = 0; i < 4; ++i) c[i] = sums[i];
  }

  /// Packs two elements of T into a word, `low` in the lower half; rounds to nearest even.
  template <class T>
  MYLOS_BLOCK_FUNCTION std::uint32_t pack(float low, float high) const {
    if constexpr (std::is_same_v<T, bfloat16>) return rounded_pair<T>(low, high);
    using Pair = __attribute__((ext_vector_type(2))) _Float16;
    return __builtin_bit_cast(std::uint32_t, Pair{static_cast<_Float16>(low), static_cast<_Float16>(high)});
  }

 private:
  using Words = __attribute__((ext_vector_type(4))) std::uint32_t;

  template <class Element>
  MYLOS_BLOCK_FUNCTION Element& at(std::uint32_t address) const {
    return *reinterpret_cast<Element*>(reinterpret_cast<char*>(first) + address);
  }
};

}  // namespace mylos::matrix
#endif
