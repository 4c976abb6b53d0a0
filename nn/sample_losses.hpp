#pragma once

#include "core/device.hpp"

namespace mylos::nn {

/// losses (S) = the sum of row_losses (T) over each sample's rows [starts[s], starts[s + 1]). Does the same with hits
/// (S) and row_hits (T), unless `hits` has no extent.
void sum_sample_losses(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                       const ConstVector<float>& row_losses, const Vector<float>& losses,
                       const ConstVector<float>& row_hits = {}, const Vector<float>& hits = {});

}  // namespace mylos::nn
