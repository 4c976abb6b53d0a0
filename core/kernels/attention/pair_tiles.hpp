#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <cstdint>

/// Tile registers of a CPU (AMX), which multiply 16 x 32 by 32 x 16 bfloat16 at a time.
namespace mylos::attention {

/// Rows of a tile register, and 32-bit elements of its rows.
inline constexpr int tile_register_side = 16;

/// Returns whether this CPU has tile registers for bfloat16, and the system lets this process use them.
bool has_pair_tiles();

#if defined(__x86_64__) && defined(__linux__) && defined(__AVX512BF16__) && !defined(MYLOS_DEVICE_BUILD)
#define MYLOS_MULTIPLIES_TILES

/// Shapes the tile registers of this thread, from construction to destruction, if `has_pair_tiles`.
class PairTileScope {
 public:
  PairTileScope() {
    if (!active_) return;
    Shape shape;
    for (int i = 0; i < registers; ++i) {
      shape.bytes_per_row[i] = 4 * tile_register_side;
      shape.rows[i] = tile_register_side;
    }
    asm volatile("ldtilecfg %0" : : "m"(shape));
  }
  PairTileScope(const PairTileScope&) = delete;
  PairTileScope& operator=(const PairTileScope&) = delete;
  ~PairTileScope() {
    if (active_) asm volatile("tilerelease" : :);
  }

 private:
  static constexpr int registers = 8;
  /// The operand of LDTILECFG.
  struct alignas(64) Shape {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t bytes_per_row[16] = {};
    std::uint8_t rows[16] = {};
  };
  static_assert(sizeof(Shape) == 64);

  bool active_ = has_pair_tiles();
};

/// The tile registers in a PairTileScope. Indices are constants, strides are in bytes.
struct PairTiles {
  template <int index>
  void clear() const {
    asm volatile("tilezero %%tmm%c0" : : "i"(index));
  }
  template <int index>
  void load(const void* from, std::size_t stride) const {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(index) : "memory");
  }
  template <int index>
  void store(void* to, std::size_t stride) const {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(index) : "memory");
  }
  /// Floats in register `sum` += pairs along the rows of `left` times pairs along the columns of `right`.
  template <int sum, int left, int right>
  void multiply() const {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(left), "i"(right));
  }
};
#else
struct PairTileScope {};
#endif

}  // namespace mylos::attention
