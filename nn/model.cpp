#include "nn/model.hpp"

#include <numeric>

namespace mylos::nn {

double Model::training_flops(const BatchShape& shape, Recompute recompute) const {
  const std::vector<double> units = unit_flops(shape, recompute);
  return std::accumulate(units.begin(), units.end(), 0.0);
}

}  // namespace mylos::nn
