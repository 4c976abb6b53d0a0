#include "nn/model.hpp"

#include "core/base/error.hpp"

#include <numeric>

namespace mylos::nn {

void Model::freeze(std::span<const std::string> patterns) { require(patterns.empty(), "this model cannot be frozen"); }

void Model::adapt(const Adapters& adapters) { require(adapters.empty(), "this model takes no adapters"); }

double Model::training_flops(const BatchShape& shape, Recompute recompute) const {
  const std::vector<double> units = unit_flops(shape, recompute);
  return std::accumulate(units.begin(), units.end(), 0.0);
}

}  // namespace mylos::nn
