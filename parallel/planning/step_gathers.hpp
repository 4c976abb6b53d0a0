#pragma once

#include "core/parameters.hpp"

#include <cstddef>
#include <vector>

/// The units that are gathered at each point of a step in sharded or hybrid mode, for plans.
namespace mylos::parallel {

using UnitList = std::vector<std::size_t>;

/// For each unit, the units whose gathers begin when it is acquired, in order. A unit that is still in memory from
/// before is not gathered again.
struct PassGathers {
  std::vector<UnitList> forward, backward;
};

struct StepGathers {
  UnitList update;    ///< units whose gathers begin after the previous step's update
  PassGathers first;  ///< of the step's first micro-batch
  PassGathers later;  ///< of each later micro-batch
};

/// Returns the gathers in a step of a model that uses its units in order. Earlier steps have used the units in the same
/// order.
StepGathers step_gathers(const ParameterTable& table);

}  // namespace mylos::parallel
