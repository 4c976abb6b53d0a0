#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/kernels/updates/adamw.hpp"
#include "core/kernels/updates/lion.hpp"
#include "core/kernels/updates/sgd.hpp"
#include "nn/sliced_optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mylos::nn {
namespace {

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
