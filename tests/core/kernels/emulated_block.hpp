#pragma once

#include "core/kernels/cuda/m16n8k16.hpp"
#include "core/kernels/cuda/m8n8k4.hpp"
#include "core/kernels/hip/mfma_16x16x16.hpp"
#include "core/numeric.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

/// Emulates a block of device threads on the host. The kernel source runs in each of its threads, which take turns. A
/// warp operation is executed once all 32 or 64 threads have reached it. To expose errors that could occur on a device,
/// threads run one after the other in the requested order between two synchronisation points, asynchronous copies leave
/// NaNs in shared memory until they are waited for, and shared memory starts as NaNs.
namespace mylos::matrix {

/// The order of the warps of a block between synchronisations, and of the threads of a warp.
enum class ThreadOrder { ascending, descending };

class EmulatedThreads;

/// The counterparts of the blocks in cuda_block.hpp and hip_block.hpp, which document the functions.
class EmulatedBlock {
 public:
  EmulatedBlock(EmulatedThreads& threads, int index, int thread) : threads_(threads), index_(index), thread_(thread) {}

  int index() const { return index_; }
  int thread() const { return thread_; }
  int lane() const;
  int warp() const;

  void sync() const;
  void sync_warp() const;
  Octet* shared() const;
  static std::uint32_t address(int octet) { return static_cast<std::uint32_t>(octet * sizeof(Octet)); }
  std::uint32_t shuffle(std::uint32_t value, int lane) const;
  float exchange(float value, int mask) const;
  float exp2(float x) const { return std::exp2(x); }

  template <class T>
  static std::uint32_t pack(float low, float high) {
    return T(low).bits | static_cast<std::uint32_t>(T(high).bits) << 16;
  }

  template <class T>
  static float to_float(std::uint16_t bits) {
    T element;
    element.bits = bits;
    return static_cast<float>(element);
  }

 protected:
  EmulatedThreads& threads_;
  int index_, thread_;
};

class EmulatedAmpereBlock : public EmulatedBlock {
 public:
  using Mma = M16n8k16;
  static constexpr int buffers = 2;
  explicit EmulatedAmpereBlock(const EmulatedBlock& block) : EmulatedBlock(block) {}

  void copy(std::uint32_t to, const void* from, bool is_there) const { copy(to, from, sizeof(Octet), is_there); }
  void copy_word(std::uint32_t to, const void* from, bool is_there) const { copy(to, from, 4, is_there); }
  void wait_for_copies() const;
  void load_matrices(std::uint32_t row, std::uint32_t (&m)[4]) const;
  void load_matrices_transposed(std::uint32_t row, std::uint32_t (&m)[4]) const;

  template <class T>
  void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) const {
    multiply_add(c, a, b0, b1, to_float<T>);
  }

 private:
  void copy(std::uint32_t to, const void* from, std::size_t bytes, bool is_there) const;
  void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                    float (*to_float)(std::uint16_t)) const;
};

/// A block that copies at once, and whose threads do not wait for each other to load.
class EmulatedSynchronousBlock : public EmulatedBlock {
 public:
  explicit EmulatedSynchronousBlock(const EmulatedBlock& block) : EmulatedBlock(block) {}

  void copy(std::uint32_t to, const void* from, bool is_there) const { copy(to, from, sizeof(Octet), is_there); }
  void copy_word(std::uint32_t to, const void* from, bool is_there) const { copy(to, from, 4, is_there); }
  static void wait_for_copies() {}
  void load_octet(std::uint32_t octet, std::uint32_t (&m)[4]) const;
  std::uint32_t load_word(std::uint32_t word) const;

 private:
  void copy(std::uint32_t to, const void* from, std::size_t bytes, bool is_there) const;
};

class EmulatedVoltaBlock : public EmulatedSynchronousBlock {
 public:
  using Mma = M8n8k4;
  static constexpr int buffers = 2;
  using EmulatedSynchronousBlock::EmulatedSynchronousBlock;

  template <class T>
  void multiply_add_transposed(float (&c0)[4], float (&c1)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b0,
                               std::uint32_t b1) const {
    multiply_add(c0, c1, {a0, a1}, {b0, b1}, true, to_float<T>);
  }
  template <class T>
  void multiply_add(float (&c0)[4], float (&c1)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b0,
                    std::uint32_t b1) const {
    multiply_add(c0, c1, {a0, a1}, {b0, b1}, false, to_float<T>);
  }

 private:
  void multiply_add(float (&c0)[4], float (&c1)[4], const std::array<std::uint32_t, 2>& a,
                    const std::array<std::uint32_t, 2>& b, bool b_has_columns, float (*to_float)(std::uint16_t)) const;
};

class EmulatedMfmaBlock : public EmulatedSynchronousBlock {
 public:
  using Mma = Mfma16x16x16;
  static constexpr int buffers = 1;
  using EmulatedSynchronousBlock::EmulatedSynchronousBlock;

  template <class T>
  void multiply_add(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b0, std::uint32_t b1) const {
    multiply_add(c, {a0, a1}, {b0, b1}, to_float<T>);
  }

 private:
  void multiply_add(float (&c)[4], const std::array<std::uint32_t, 2>& a, const std::array<std::uint32_t, 2>& b,
                    float (*to_float)(std::uint16_t)) const;
};

/// Counters of a launch.
struct EmulationCounts {
  std::size_t multiply_adds = 0;   ///< of elements, by instructions of tensor cores
  std::size_t operand_loads = 0;   ///< warp loads: of four matrices, or of an octet or a word per thread
  std::size_t bank_conflicts = 0;  ///< bank accesses of those loads beyond one for each 128 bytes
};

/// Runs body(block) in all threads of blocks [0, blocks), each of `warps` warps of `lanes` threads with `octets` octets
/// of shared memory. Throws std::logic_error with the reason if threads do not synchronise correctly, or if addresses
/// are outside shared memory.
EmulationCounts emulate(std::size_t blocks, int lanes, std::size_t octets, ThreadOrder order,
                        const std::function<void(const EmulatedBlock&)>& body);

}  // namespace mylos::matrix
