#pragma once

#include "nn/optimizer.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// The optimizer that a rule for one part of a slice gives.
namespace mylos::nn {

/// The part of a slice that belongs to one group.
struct UpdatedPart {
  ParameterGroup group;
  float weight_decay = 0.0f;
  ConstVector<float> gradient;
  Vector<float> master;
  std::vector<Vector<float>> slots;  ///< start at zero
  RoundedValues rounded;
};

/// An optimizer of slices by `Rule`, which has
/// - Settings, the settings of an update in its kernel;
/// - settings(config, update, part), which returns them;
/// - update(space, candidates of settings, control, part);
/// - lasting(config), which returns which updates its slots do not determine (Optimizer::revert), and empty if none;
/// - revert(space, settings, part), for the others.
template <class Rule>
class SlicedOptimizer final : public Optimizer {
 public:
  SlicedOptimizer(const OptimizerConfig& config, const ParameterTable& table, std::span<const ParameterSlice> slices)
      : config_(config), slices_(slices.begin(), slices.end()) {
    for (const std::string& name : slot_names()) {
      std::vector<Vector<float>>& of_slices = slots_.emplace_back();
      for (const ParameterSlice& slice : slices_) {
        const ParameterUnit& unit = table.units()[slice.unit];
        of_slices.emplace_back("mylos::optimizer::" + name + "::" + unit.name,
                               unit.trained ? slice.end - slice.begin : 0);
      }
    }
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      for (const ParameterSegment& segment : table.segments(slices_[i].unit)) add_part(i, segment);
    }
  }

  const std::vector<std::string>& slot_names() const override { return config_.kind().slots; }
  Vector<float> slot(std::size_t slot, std::size_t slice) const override { return slots_[slot][slice]; }

  void update(const ExecutionSpace& space, const Candidates<UpdateSettings>& settings,
              const ConstVector<UpdateControl>& control) override {
    for (const UpdatedPart& part : parts_) {
      Rule::update(space, settings.map([&](const UpdateSettings& each) { return Rule::settings(config_, each, part); }),
                   control, part);
    }
    note_rounded(true);
  }

  std::string_view revert(const ExecutionSpace& space, const UpdateSettings& settings) override {
    if (const std::string_view lasting = Rule::lasting(config_); !lasting.empty()) return lasting;
    for (const UpdatedPart& part : parts_) Rule::revert(space, Rule::settings(config_, settings, part), part);
    note_rounded(false);
    return {};
  }

 private:
  void add_part(std::size_t slice_index, const ParameterSegment& segment) {
    const ParameterSlice& whole = slices_[slice_index];
    const std::size_t first = std::max(segment.begin, whole.begin), last = std::min(segment.end, whole.end);
    if (!segment.group.trainable || first >= last) return;
    const std::size_t begin = first - whole.begin, end = last - whole.begin;
    UpdatedPart part{
        .group = segment.group,
        .weight_decay = config_.decay_all || segment.group.decay ? static_cast<float>(config_.weight_decay) : 0.0f,
        .gradient = slice(whole.gradient, begin, end),
        .master = slice(whole.master, begin, end),
        .slots = {},
        .rounded = {}};
    for (const std::vector<Vector<float>>& slot : slots_) part.slots.push_back(slice(slot[slice_index], begin, end));
    if (const RoundedCopy* const copy = whole.rounded.get()) {
      part.rounded = {copy->values.data() + begin * bytes_of(copy->precision), copy->precision};
    }
    parts_.push_back(std::move(part));
  }
  /// To be called after all parts were updated with their rounded copies, or reverted without.
  void note_rounded(bool is_current) const {
    for (const ParameterSlice& slice : slices_) {
      if (slice.rounded != nullptr) slice.rounded->is_current = is_current;
    }
  }

  OptimizerConfig config_;
  std::vector<ParameterSlice> slices_;
  std::vector<std::vector<Vector<float>>> slots_;  ///< by slot and slice
  std::vector<UpdatedPart> parts_;
};

}  // namespace mylos::nn
