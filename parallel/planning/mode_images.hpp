#pragma once

#include "core/numeric.hpp"
#include "core/parameters.hpp"
#include "parallel/sharding/mode_kind.hpp"

#include <cstddef>

/// The host memory through which a rank's device arrays pass when they are exchanged over MPI.
namespace mylos::parallel {

struct ImageSettings {
  ModeSettings mode;
  std::size_t shards = 1;    ///< ranks that split a unit
  std::size_t replicas = 1;  ///< ranks that hold the same slices
  Precision precision = Precision::float32;
  std::size_t loaded_piece = 0;  ///< elements of a piece in which tensors are passed on to replicas at start; 0: none
  bool evaluates = false;        ///< the run evaluates between steps
  std::size_t samples = 1;       ///< samples of a step, whose losses and observations are exchanged
};

/// Returns the most bytes that any rank's ImageMemory takes in a run from its beginning, by replaying the exchanges of
/// a few steps of a model that uses its units in order. 0 if a rank is alone.
std::size_t image_bytes(const ImageSettings& settings, const ParameterTable& table);

/// The same for one rank: `rank` is its position among those that split a unit.
std::size_t image_bytes_of_rank(const ImageSettings& settings, const ParameterTable& table, std::size_t rank);

}  // namespace mylos::parallel
