#pragma once

#include "parallel/sharding/unit_exchanges.hpp"

#include <cstddef>

namespace mylos::parallel {

/// The memory of a rank in a mode, in bytes, by formula. With P parameters split among n ranks, slices have P/n
/// elements.
struct StrategyMemory {
  std::size_t slices = 0;     ///< elements of this rank's trained slices; each optimizer slot has as many floats
  std::size_t values = 0;     ///< in the compute type, with gathered units and float master weights
  std::size_t gradients = 0;  ///< including units that are being summed
  std::size_t exchange = 0;   ///< gradients in the type in which they are exchanged
};
StrategyMemory strategy_memory(const UnitExchanges& exchanges);

}  // namespace mylos::parallel
