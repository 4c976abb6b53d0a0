#include "nn/optimizer.hpp"

#include <algorithm>

namespace mylos::nn {
namespace {

/// Elements of a unit up to the end of its last trainable tensor. Gradients of frozen ones before it are zero.
std::size_t trainable_size(const ParameterTable& table, std::size_t unit) {
  std::size_t size = 0;
  for (const ParameterSegment& segment : table.segments(unit)) {
    if (segment.group.trainable) size = segment.end;
  }
  return size;
}

}  // namespace

GradientNorm::GradientNorm(const ParameterTable& table, std::span<const ParameterSlice> slices) {
  std::size_t blocks = 0;
  std::vector<std::size_t> first_block;
  for (const ParameterSlice& whole : slices) {
    const std::size_t end = std::clamp(trainable_size(table, whole.unit), whole.begin, whole.end);
    parts_.push_back({whole.begin, slice(whole.gradient, 0, end - whole.begin), {}});
    first_block.push_back(blocks);
    blocks += norm_blocks(whole.begin, whole.end);
  }
  sums_ = Vector<double>("mylos::GradientNorm::sums", blocks);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.sums =
        slice(sums_, first_block[i], first_block[i] + norm_blocks(part.begin, part.begin + part.gradient.size()));
  }
}

ConstVector<double> GradientNorm::block_sums(const ExecutionSpace& space) const {
  for (const Part& part : parts_) block_squared_sums(space, part.gradient, part.begin, part.sums);
  return sums_;
}

}  // namespace mylos::nn
