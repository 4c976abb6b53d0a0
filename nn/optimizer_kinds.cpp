#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/kernels/updates/adamw.hpp"
#include "core/kernels/updates/lion.hpp"
#include "core/kernels/updates/sgd.hpp"
#include "nn/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mylos::nn {
namespace {

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

struct AdamW {
  static AdamWSettings settings(const OptimizerConfig& config, const UpdateSettings& update, const UpdatedPart& part) {
    const double exponent = static_cast<double>(update.step + 1);
    const double beta1 = config.value("adam-beta1"), beta2 = config.value("adam-beta2");
    return {.learning_rate = update.learning_rate * part.group.learning_rate_factor,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = static_cast<float>(config.value("adam-epsilon")),
            .weight_decay = part.weight_decay,
            .bias_correction1 = 1.0 - std::pow(beta1, exponent),
            .bias_correction2 = 1.0 - std::pow(beta2, exponent)};
  }
  static void update(const ExecutionSpace& space, const Candidates<AdamWSettings>& settings,
                     const ConstVector<UpdateControl>& control, const UpdatedPart& part) {
    adamw_update(space, settings, control, part.gradient, part.master, part.slots[0], part.slots[1], part.rounded);
  }
  static std::string_view lasting(const OptimizerConfig&) { return {}; }
  static void revert(const ExecutionSpace& space, const AdamWSettings& settings, const UpdatedPart& part) {
    adamw_revert(space, settings, part.slots[0], part.slots[1], part.master);
  }
};

struct Sgd {
  static SgdSettings settings(const OptimizerConfig& config, const UpdateSettings& update, const UpdatedPart& part) {
    return {.learning_rate = update.learning_rate * part.group.learning_rate_factor,
            .momentum = static_cast<float>(config.value("momentum")),
            .weight_decay = part.weight_decay,
            .nesterov = config.value("nesterov") != 0.0};
  }
  static void update(const ExecutionSpace& space, const Candidates<SgdSettings>& settings,
                     const ConstVector<UpdateControl>& control, const UpdatedPart& part) {
    sgd_update(space, settings, control, part.gradient, part.master, part.slots[0], part.rounded);
  }
  static std::string_view lasting(const OptimizerConfig& config) {
    return config.value("nesterov") == 0.0 ? "" : "with Nesterov momentum";
  }
  static void revert(const ExecutionSpace& space, const SgdSettings& settings, const UpdatedPart& part) {
    sgd_revert(space, settings, part.slots[0], part.master);
  }
};

struct Lion {
  static LionSettings settings(const OptimizerConfig& config, const UpdateSettings& update, const UpdatedPart& part) {
    return {.learning_rate = update.learning_rate * part.group.learning_rate_factor,
            .beta1 = config.value("lion-beta1"),
            .beta2 = config.value("lion-beta2"),
            .weight_decay = part.weight_decay};
  }
  static void update(const ExecutionSpace& space, const Candidates<LionSettings>& settings,
                     const ConstVector<UpdateControl>& control, const UpdatedPart& part) {
    lion_update(space, settings, control, part.gradient, part.master, part.slots[0], part.rounded);
  }
  // The moment after an update does not determine the sign that was taken of the one before.
  static std::string_view lasting(const OptimizerConfig&) { return "of Lion"; }
  static void revert(const ExecutionSpace&, const LionSettings&, const UpdatedPart&) {}
};

template <class Rule>
std::unique_ptr<Optimizer> make(const OptimizerConfig& config, const ParameterTable& table,
                                std::span<const ParameterSlice> slices) {
  return std::make_unique<SlicedOptimizer<Rule>>(config, table, slices);
}

std::string contradiction_of_sgd(const OptimizerConfig& config) {
  if (config.value("nesterov") == 0.0 || config.value("momentum") > 0.0) return {};
  return fmt::format("{0} needs a {1} above 0; give one, or leave out {0}", setting("nesterov"), setting("momentum"));
}

constexpr RealRange rate{0, 1, false, true}, positive{0, unbounded, true};

/// Checkpoints of versions that had only AdamW and SGD lack AdamW's settings.
std::vector<OptimizerKind> make_kinds() {
  return {{.name = "adamw",
           .aliases = {"adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused"},
           .slots = {"m", "v"},
           .settings = {{"adam-beta1", 0.9, "decay rate of the mean of gradients", rate, false, false},
                        {"adam-beta2", 0.999, "decay rate of the mean of squared gradients", rate, false, false},
                        {"adam-epsilon", 1e-8, "term added to the denominator of the update, for numerical stability",
                         positive, false, false}},
           .make = make<AdamW>},
          {.name = "sgd",
           .aliases = {},
           .slots = {"momentum"},
           .settings = {{"momentum", 0.9, "momentum of SGD", rate},
                        {"nesterov", 0.0, "SGD with Nesterov momentum", {}, true}},
           .make = make<Sgd>,
           .contradiction = contradiction_of_sgd},
          {.name = "lion",
           .aliases = {},
           .slots = {"m"},
           .settings = {{"lion-beta1", 0.9, "share of the moment in the sign that Lion's update takes", rate},
                        {"lion-beta2", 0.99, "decay rate of Lion's moment", rate}},
           .make = make<Lion>}};
}

}  // namespace

std::span<const OptimizerKind> optimizer_kinds() {
  static const std::vector<OptimizerKind> kinds = make_kinds();
  return kinds;
}

const OptimizerKind* find_optimizer_kind(std::string_view name) {
  const auto found = std::ranges::find(optimizer_kinds(), name, &OptimizerKind::name);
  return found == optimizer_kinds().end() ? nullptr : &*found;
}

const OptimizerKind& OptimizerConfig::kind() const {
  const OptimizerKind* const found = find_optimizer_kind(name);
  require(found != nullptr, fmt::format("no optimizer {}", name));
  return *found;
}

const double& OptimizerConfig::value(std::string_view setting) const {
  if (const auto given = settings.find(setting); given != settings.end()) return given->second;
  const double* initial = nullptr;
  for (const OptimizerKind& each : optimizer_kinds()) {
    const auto found = std::ranges::find(each.settings, setting, &OptimizerSetting::name);
    if (found != each.settings.end()) initial = &found->initial;
  }
  require(initial != nullptr, fmt::format("no optimizer has a setting {}", setting));
  return *initial;
}

double& OptimizerConfig::value(std::string_view setting) {
  const double initial = std::as_const(*this).value(setting);
  return settings.try_emplace(std::string(setting), initial).first->second;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const ParameterTable& table,
                                          std::span<const ParameterSlice> slices) {
  return config.kind().make(config, table, slices);
}

}  // namespace mylos::nn
