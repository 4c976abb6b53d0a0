#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Collects consecutive small units that are exchanged in one call. The choice of units depends only on their sizes and
/// order, so it is the same on every rank.
class UnitBatch {
 public:
  using Exchange = std::function<void(std::span<const std::size_t> units)>;

  /// Calls `exchange` as soon as the collected units have `least_bytes` (see Communicator::least_sum_bytes). A unit
  /// that has as many by itself is exchanged alone, immediately after those collected before it.
  UnitBatch(std::size_t least_bytes, Exchange exchange);

  void add(std::size_t unit, std::size_t bytes);
  /// Exchanges the collected units, if there are any.
  void flush();

 private:
  std::size_t least_bytes_, bytes_ = 0;
  Exchange exchange_;
  std::vector<std::size_t> units_;
};

}  // namespace mylos::parallel
