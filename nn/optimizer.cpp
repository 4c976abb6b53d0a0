#include "nn/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::nn {
namespace {

/// The part of a slice that belongs to one group, in elements of the slice.
struct SliceSegment {
  std::size_t slice = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  ParameterGroup group;
};

std::vector<SliceSegment> trainable_segments(const ParameterTable& table, std::span<const ParameterSlice> slices) {
  std::vector<SliceSegment> segments;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    for (const ParameterSegment& segment : table.segments(slices[i].unit)) {
      const std::size_t begin = std::max(segment.begin, slices[i].begin), end = std::min(segment.end, slices[i].end);
      if (!segment.group.trainable || begin >= end) continue;
      segments.push_back({i, begin - slices[i].begin, end - slices[i].begin, segment.group});
    }
  }
  return segments;
}

/// Elements of a unit up to the end of its last trainable tensor. Gradients of frozen ones before it are zero.
std::size_t trainable_size(const ParameterTable& table, std::size_t unit) {
  std::size_t size = 0;
  for (const ParameterSegment& segment : table.segments(unit)) {
    if (segment.group.trainable) size = segment.end;
  }
  return size;
}

/// The weight decay of a group's tensors under an AdamWConfig or SgdConfig.
template <class Config>
float decay_of(const Config& config, const ParameterGroup& group) {
  return config.decay_all || group.decay ? static_cast<float>(config.weight_decay) : 0.0f;
}

/// Common base of AdamW and SGD: the slices, their segments by group, and slots that start at zero.
class SlicedOptimizer : public Optimizer {
 public:
  SlicedOptimizer(std::vector<std::string> names, const ParameterTable& table, std::span<const ParameterSlice> slices)
      : names_(std::move(names)),
        slices_(slices.begin(), slices.end()),
        segments_(trainable_segments(table, slices)),
        slots_(names_.size()) {
    for (std::size_t slot = 0; slot < names_.size(); ++slot) {
      for (const ParameterSlice& slice : slices_) {
        const std::string label = fmt::format("mylos::optimizer::{}::{}", names_[slot], table.units()[slice.unit].name);
        slots_[slot].emplace_back(label, table.units()[slice.unit].trained ? slice.end - slice.begin : 0);
      }
    }
  }

  std::vector<std::string> slot_names() const override { return names_; }
  Vector<float> slot(std::size_t slot, std::size_t slice) const override { return slots_[slot][slice]; }

 protected:
  std::span<const SliceSegment> segments() const { return segments_; }
  Vector<float> master(const SliceSegment& part) const { return cut(slices_[part.slice].master, part); }
  Vector<float> gradient(const SliceSegment& part) const { return cut(slices_[part.slice].gradient, part); }
  RoundedValues rounded(const SliceSegment& part) const {
    const RoundedCopy* const copy = slices_[part.slice].rounded.get();
    if (copy == nullptr) return {};
    return {copy->values.data() + part.begin * bytes_of(copy->precision), copy->precision};
  }
  /// To be called after all segments were updated with their rounded copies, or reverted without.
  void note_rounded(bool is_current) const {
    for (const ParameterSlice& slice : slices_) {
      if (slice.rounded != nullptr) slice.rounded->is_current = is_current;
    }
  }
  Vector<float> slot_of(std::size_t slot, const SliceSegment& part) const {
    return cut(slots_[slot][part.slice], part);
  }

 private:
  static Vector<float> cut(const Vector<float>& whole, const SliceSegment& part) {
    return slice(whole, part.begin, part.end);
  }

  std::vector<std::string> names_;
  std::vector<ParameterSlice> slices_;
  std::vector<SliceSegment> segments_;
  std::vector<std::vector<Vector<float>>> slots_;
};

class AdamW final : public SlicedOptimizer {
 public:
  AdamW(const AdamWConfig& config, const ParameterTable& table, std::span<const ParameterSlice> slices)
      : SlicedOptimizer({"m", "v"}, table, slices), config_(config) {}

  void update(const ExecutionSpace& space, const Candidates<UpdateSettings>& settings,
              const ConstVector<UpdateControl>& control) override {
    for (const SliceSegment& part : segments()) {
      adamw_update(space, candidates(settings, part.group), control, gradient(part), master(part), slot_of(0, part),
                   slot_of(1, part), rounded(part));
    }
    note_rounded(true);
  }

  bool revert(const ExecutionSpace& space, const UpdateSettings& settings) override {
    for (const SliceSegment& part : segments()) {
      adamw_revert(space, kernel_settings(settings, part.group), slot_of(0, part), slot_of(1, part), master(part));
    }
    note_rounded(false);
    return true;
  }

 private:
  Candidates<AdamWSettings> candidates(const Candidates<UpdateSettings>& settings, const ParameterGroup& group) const {
    return settings.map([&](const UpdateSettings& each) { return kernel_settings(each, group); });
  }
  AdamWSettings kernel_settings(const UpdateSettings& settings, const ParameterGroup& group) const {
    const double exponent = static_cast<double>(settings.step + 1);
    return {.learning_rate = settings.learning_rate * group.learning_rate_factor,
            .beta1 = config_.beta1,
            .beta2 = config_.beta2,
            .epsilon = static_cast<float>(config_.epsilon),
            .weight_decay = decay_of(config_, group),
            .bias_correction1 = 1.0 - std::pow(config_.beta1, exponent),
            .bias_correction2 = 1.0 - std::pow(config_.beta2, exponent)};
  }

  AdamWConfig config_;
};

class Sgd final : public SlicedOptimizer {
 public:
  Sgd(const SgdConfig& config, const ParameterTable& table, std::span<const ParameterSlice> slices)
      : SlicedOptimizer({"momentum"}, table, slices), config_(config) {}

  void update(const ExecutionSpace& space, const Candidates<UpdateSettings>& settings,
              const ConstVector<UpdateControl>& control) override {
    for (const SliceSegment& part : segments()) {
      sgd_update(space, candidates(settings, part.group), control, gradient(part), master(part), slot_of(0, part),
                 rounded(part));
    }
    note_rounded(true);
  }

  bool revert(const ExecutionSpace& space, const UpdateSettings& settings) override {
    if (config_.nesterov) return false;
    for (const SliceSegment& part : segments()) {
      sgd_revert(space, kernel_settings(settings, part.group), slot_of(0, part), master(part));
    }
    note_rounded(false);
    return true;
  }

 private:
  Candidates<SgdSettings> candidates(const Candidates<UpdateSettings>& settings, const ParameterGroup& group) const {
    return settings.map([&](const UpdateSettings& each) { return kernel_settings(each, group); });
  }
  SgdSettings kernel_settings(const UpdateSettings& settings, const ParameterGroup& group) const {
    return {.learning_rate = settings.learning_rate * group.learning_rate_factor,
            .momentum = static_cast<float>(config_.momentum),
            .weight_decay = decay_of(config_, group),
            .nesterov = config_.nesterov};
  }

  SgdConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const AdamWConfig& config, const ParameterTable& table,
                                      std::span<const ParameterSlice> slices) {
  return std::make_unique<AdamW>(config, table, slices);
}

std::unique_ptr<Optimizer> make_sgd(const SgdConfig& config, const ParameterTable& table,
                                    std::span<const ParameterSlice> slices) {
  return std::make_unique<Sgd>(config, table, slices);
}

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
