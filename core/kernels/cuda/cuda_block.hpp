#pragma once

#include "core/device_functions.hpp"
#include "core/kernels/cuda/m16n8k16.hpp"
#include "core/kernels/cuda/m8n8k4.hpp"
#include "core/numeric.hpp"

#include <type_traits>

/// The operations that matrix_tiles.hpp and the products of tiles need from a thread block, as instructions of devices.
/// Instruction names are those of NVIDIA's "Parallel Thread Execution ISA".
#if defined(MYLOS_DEVICE_BUILD)
namespace mylos::matrix {

/// The operations of a block that are the same on all devices.
template <class Products>
struct CudaBlock {
  using Mma = Products;
  /// Buffers of the rows that a pass loops over: one is filled while the other is read.
  static constexpr int buffers = 2;

  Octet* first;  ///< start of shared memory, aligned to tile_alignment octets

  MYLOS_BLOCK_FUNCTION int index() const { return static_cast<int>(blockIdx.x); }
  MYLOS_BLOCK_FUNCTION int thread() const { return static_cast<int>(threadIdx.x); }
  MYLOS_BLOCK_FUNCTION int lane() const { return static_cast<int>(threadIdx.x) % Mma::lanes; }
  MYLOS_BLOCK_FUNCTION int warp() const { return static_cast<int>(threadIdx.x) / Mma::lanes; }

  /// Makes the writes of each thread visible to the rest of the block or warp.
  MYLOS_BLOCK_FUNCTION void sync() const { __syncthreads(); }
  MYLOS_BLOCK_FUNCTION void sync_warp() const { __syncwarp(); }

  /// Shared memory, and the address of an octet in it for the functions below.
  MYLOS_BLOCK_FUNCTION Octet* shared() const { return first; }
  MYLOS_BLOCK_FUNCTION std::uint32_t address(int octet) const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(first)) + octet * static_cast<int>(sizeof(Octet));
  }

  /// Returns `value` of thread `lane` of the warp.
  MYLOS_BLOCK_FUNCTION std::uint32_t shuffle(std::uint32_t value, int lane) const {
    return __shfl_sync(0xffffffffu, value, lane);
  }
  /// Returns `value` of the thread whose number in the warp differs in the bits of `mask`.
  MYLOS_BLOCK_FUNCTION float exchange(float value, int mask) const { return __shfl_xor_sync(0xffffffffu, value, mask); }

  /// Returns 2^x to 2 units in the last place; 0 below the smallest normal number.
  MYLOS_BLOCK_FUNCTION float exp2(float x) const { return gpu::exp2(x); }
};

/// A block on devices of compute capability 8.0 or later.
struct AmpereBlock : CudaBlock<M16n8k16> {
  /// Whether the compiler leaves registers for Pass::blocks blocks at once on a multiprocessor.
  static constexpr bool limits_registers = true;

  /// Starts copying 16 bytes to shared memory, or zeros if not `is_there`; `from` must be valid either way.
  MYLOS_BLOCK_FUNCTION void copy(std::uint32_t to, const void* from, bool is_there) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
  }
  /// The same for 4 bytes.
  MYLOS_BLOCK_FUNCTION void copy_word(std::uint32_t to, const void* from, bool is_there) const {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(is_there ? 4 : 0) : "memory");
  }
  /// Waits for this thread's copies; those of other threads are complete after a sync().
  MYLOS_BLOCK_FUNCTION void wait_for_copies() const { asm volatile("cp.async.wait_all;" ::: "memory"); }

  /// Loads four 8 x 8 matrices. Thread 8 i + r gives the address of row r of matrix i. Each thread receives, from each
  /// matrix or its transpose, columns 2 t and 2 t + 1 of row g.
  MYLOS_BLOCK_FUNCTION void load_matrices(std::uint32_t row, std::uint32_t (&m)[4]) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row));
  }
  MYLOS_BLOCK_FUNCTION void load_matrices_transposed(std::uint32_t row, std::uint32_t (&m)[4]) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row));
  }

  /// c += a b for fragments of T; sums are float.
  template <class T>
  MYLOS_BLOCK_FUNCTION void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) const {
    if constexpr (std::is_same_v<T, bfloat16>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
      static_assert(std::is_same_v<T, half>);
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
  }

  /// Packs two elements of T into a word, `low` in the lower half; rounds to nearest even.
  template <class T>
  MYLOS_BLOCK_FUNCTION std::uint32_t pack(float low, float high) const {
    std::uint32_t word;
    if constexpr (std::is_same_v<T, bfloat16>) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    }
    return word;
  }
};

/// A block on devices of compute capability 7.0, which copy to shared memory through registers and multiply half.
struct VoltaBlock : CudaBlock<M8n8k4> {
  static constexpr bool limits_registers = false;

  /// Copies 16 bytes to shared memory, or zeros if not `is_there`. Returns once they are written; what hides the time
  /// that they take are the other warps of the multiprocessor.
  MYLOS_BLOCK_FUNCTION void copy(std::uint32_t to, const void* from, bool is_there) const {
    uint4 x{0, 0, 0, 0};
    if (is_there) x = __ldg(static_cast<const uint4*>(from));
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
  }
  /// The same for 4 bytes.
  MYLOS_BLOCK_FUNCTION void copy_word(std::uint32_t to, const void* from, bool is_there) const {
    const unsigned x = is_there ? __ldg(static_cast<const unsigned*>(from)) : 0u;
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
  }
  MYLOS_BLOCK_FUNCTION void wait_for_copies() const {}

  /// Loads eight adjacent elements.
  MYLOS_BLOCK_FUNCTION void load_octet(std::uint32_t octet, std::uint32_t (&m)[4]) const {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(octet));
  }

  /// c += a b for the fragments of half of four quad pairs; sums are float. c0 has columns 0 to 3 of c, c1 columns 4 to
  /// 7. A thread has four elements of a column of b with the first, and of a row of b with the second.
  template <class T>
  MYLOS_BLOCK_FUNCTION void multiply_add_transposed(float (&c0)[4], float (&c1)[4], std::uint32_t a0, std::uint32_t a1,
                                                    std::uint32_t b0, std::uint32_t b1) const {
    static_assert(std::is_same_v<T, half>);
    asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, "
        "{%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(c0[0]), "+f"(c0[1]), "+f"(c0[2]), "+f"(c0[3]), "+f"(c1[0]), "+f"(c1[1]), "+f"(c1[2]), "+f"(c1[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
  }
  template <class T>
  MYLOS_BLOCK_FUNCTION void multiply_add(float (&c0)[4], float (&c1)[4], std::uint32_t a0, std::uint32_t a1,
                                         std::uint32_t b0, std::uint32_t b1) const {
    static_assert(std::is_same_v<T, half>);
    asm("mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, "
        "{%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(c0[0]), "+f"(c0[1]), "+f"(c0[2]), "+f"(c0[3]), "+f"(c1[0]), "+f"(c1[1]), "+f"(c1[2]), "+f"(c1[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
  }

  /// Packs two elements of T into a word, `low` in the lower half; rounds to nearest even.
  template <class T>
  MYLOS_BLOCK_FUNCTION std::uint32_t pack(float low, float high) const {
    return T(low).bits | static_cast<std::uint32_t>(T(high).bits) << 16;
  }
};

}  // namespace mylos::matrix
#endif
