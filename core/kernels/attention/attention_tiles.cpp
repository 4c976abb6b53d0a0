#include "core/kernels/attention/attention_tiles.hpp"

namespace mylos::attention {

Wave first_wave(std::size_t longest, bool has_partial_sums) {
  const auto length = static_cast<int>(longest);
  if (!has_partial_sums || length <= longest_attention_tile) return {length, 1, 0};
  return {tile_side, (length + tile_side - 1) / tile_side, 0};
}

QueryParts query_parts(std::size_t longest) {
  const Wave like = first_wave(longest, true);
  return {like.side, like.tiles};
}

}  // namespace mylos::attention
