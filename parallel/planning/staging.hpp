#pragma once

#include "parallel/sharding/unit_exchanges.hpp"

#include <cstddef>

/// Staging: the host memory through which a rank's device arrays pass when they are exchanged over MPI.
namespace mylos::parallel {

/// The exchanges of a run that are not of units.
struct StagedRun {
  std::size_t loaded_piece = 0;  ///< elements of a piece in which tensors are passed on to replicas at start; 0: none
  bool evaluates = false;        ///< the run evaluates between steps
  std::size_t samples = 1;       ///< samples of a step, whose losses and observations are exchanged
};

/// Returns the most bytes that any rank's StagingMemory takes in a run from its beginning, by replaying what the
/// strategy does in a few steps of a model that uses its units in order. 0 if a rank is alone.
std::size_t staging_bytes(const UnitExchanges& exchanges, const StagedRun& run);

/// The same for one rank: `rank` is its position among those that split a unit.
std::size_t staging_bytes_of_rank(const UnitExchanges& exchanges, const StagedRun& run, std::size_t rank);

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
