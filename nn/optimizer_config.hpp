#pragma once

#include "core/base/options/option_values.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mylos {
class ParameterTable;
struct ParameterSlice;
}  // namespace mylos

/// The kinds of optimizers, as rows of a table: options, memory, checkpoints and the optimizer follow from a row.
namespace mylos::nn {

class Optimizer;
struct OptimizerConfig;

/// A number or switch of one kind of optimizer: an option of `mylos train` and, if it is saved, a member of checkpoints
/// that a resumed run must share.
struct OptimizerSetting {
  std::string_view name;   ///< of the option: "adam-beta1"
  double initial = 0.0;    ///< the value if none is given
  std::string_view help;   ///< of the option
  RealRange range = {};    ///< of a number
  bool is_switch = false;  ///< true: the value is 0 or 1
  bool is_saved = true;    ///< false: checkpoints have it only in their configuration
};

struct OptimizerKind {
  std::string_view name;             ///< for --optimizer: "adamw"
  std::vector<std::string> aliases;  ///< names in other programs
  std::vector<std::string> slots;    ///< names of the state in checkpoints; a slot has a float per element
  std::vector<OptimizerSetting> settings;
  /// Returns the optimizer; `table` and the slices' memory must outlive it.
  std::unique_ptr<Optimizer> (*make)(const OptimizerConfig& config, const ParameterTable& table,
                                     std::span<const ParameterSlice> slices);
  /// Returns what is wrong with the settings together, for a user; empty if nothing is.
  std::string (*contradiction)(const OptimizerConfig& config) = nullptr;
};

/// Returns all kinds; the first one is the default.
std::span<const OptimizerKind> optimizer_kinds();
/// Returns the kind with this name, null if there is none.
const OptimizerKind* find_optimizer_kind(std::string_view name);

/// Selects an optimizer and its settings.
struct OptimizerConfig {
  std::string name = "adamw";  ///< of the kind
  double weight_decay = 0.0;   ///< for tensors whose group has decay
  bool decay_all = false;      ///< applies weight decay to every trainable tensor, regardless of its group
  std::map<std::string, double, std::less<>> settings = {};  ///< by name; those of other kinds do nothing

  /// Errors: std::invalid_argument if there is no such kind.
  const OptimizerKind& kind() const;
  /// Returns a setting of any kind, the initial value if it is not set. Errors: std::invalid_argument if no kind has
  /// it.
  const double& value(std::string_view setting) const;
  double& value(std::string_view setting);
};

/// Returns the optimizer of a configuration; `table` and the slices' memory must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const ParameterTable& table,
                                          std::span<const ParameterSlice> slices);

}  // namespace mylos::nn
