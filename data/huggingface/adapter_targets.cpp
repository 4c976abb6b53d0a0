#include "data/huggingface/adapter_targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/tokenizer/json/regular_expression.hpp"

namespace mylos::data {
namespace {

/// Compiles `before` + text + `after`, to be matched from the start of a module's name. Throws std::runtime_error with
/// `key` and the text.
Pattern compiled(const AdapterConfig& config, const char* key, const std::string& text, const char* before,
                 const char* after) {
  try {
    return Pattern(fmt::format("\\A{}{}{}", before, text, after));
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{} \"{}\": {}", key_text(config, key), printable(text), error.what()));
  }
}

bool is_match(const Pattern& pattern, const std::string& module) {
  std::vector<Match> parts;
  pattern.find(module, parts);
  return !parts.empty() && parts.front().is_match;
}

/// Returns whether `name` is the whole name of `module` or its end after a dot.
bool is_called(const std::string& module, const std::string& name) { return ("." + module).ends_with("." + name); }

/// Returns whether `module`, or a module around it, is trained whole: whether its name ends with one of `names`. As in
/// PEFT there need not be a dot before it: "classifier" means "pre_classifier", too.
bool is_trained(const std::string& module, std::span<const std::string> names) {
  return std::ranges::any_of(names,
                             [&](const auto& name) { return (module + ".").find(name + ".") != std::string::npos; });
}

/// Returns the heads that PEFT adds to modules_to_save for a task, whether a model has them or not.
std::vector<std::string> heads_of(const std::string& task_type) {
  if (task_type == "SEQ_CLS" || task_type == "TOKEN_CLS") return {"classifier", "score"};
  if (task_type == "QUESTION_ANS") return {"qa_outputs"};
  return {};
}

/// Removes modules unless they are called as `names` or, if that is empty, match the expression for whole names.
void keep_named(const AdapterConfig& config, const char* key, std::span<const std::string> names,
                const std::string& expression, bool is_kept, std::vector<std::string>& modules) {
  if (names.empty() && expression.empty()) return;
  const Pattern pattern = compiled(config, key, expression, "(?:", ")\\z");
  std::erase_if(modules, [&](const std::string& module) {
    const bool is_named = std::ranges::any_of(names, [&](const auto& name) { return is_called(module, name); });
    return (is_named || is_match(pattern, module)) != is_kept;
  });
}

/// Removes the modules of layers that layers_to_transform lacks, except those whose whole name is a target.
void keep_layers(const AdapterConfig& config, std::vector<std::string>& modules) {
  if (config.layers.empty()) return;
  const std::string lists =
      config.layer_lists.empty() ? "[^.]*" : fmt::format("{}", fmt::join(config.layer_lists, "|"));
  const std::string numbers = fmt::format(")\\.(?:{})\\.", fmt::join(config.layers, "|"));
  const Pattern pattern = compiled(config, "layers_pattern", lists, "(?:.*\\.)?(?:", numbers.c_str());
  std::erase_if(modules, [&](const std::string& module) {
    return !is_match(pattern, module) && std::ranges::find(config.targets, module) == config.targets.end();
  });
}

/// Returns for each module the value of the first expression that matches the end of its name, else `otherwise`. Throws
/// if an expression matches no module.
template <class Value>
std::vector<Value> values_of(const AdapterConfig& config, const char* key,
                             std::span<const std::pair<std::string, Value>> patterns, Value otherwise,
                             std::span<const std::string> modules) {
  std::vector<Value> values(modules.size(), otherwise);
  std::vector<bool> is_set(modules.size());
  for (const auto& [text, value] : patterns) {
    const Pattern pattern = compiled(config, key, text, "(.*\\.)?(", ")$");
    bool is_used = false;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      if (!is_match(pattern, modules[i])) continue;
      if (!is_set[i]) values[i] = value;
      is_set[i] = is_used = true;
    }
    ensure(is_used, fmt::format("{} \"{}\" matches no module with an adapter", key_text(config, key), printable(text)));
  }
  return values;
}

/// Lists the last parts of the modules' names: "k_proj, q_proj".
std::string short_names(std::span<const std::string> modules) {
  std::set<std::string> names;
  for (const std::string& module : modules) names.insert(module.substr(module.rfind('.') + 1));
  return listed({names.begin(), names.end()});
}

}  // namespace

std::vector<AdapterTarget> adapter_targets(const AdapterConfig& config, std::span<const std::string> linear_modules,
                                           std::string_view output_layer) {
  const auto no_module = [&](const std::string& target) {
    fail(fmt::format("{} \"{}\" matches no module; the linear modules of this model are {}",
                     key_text(config, "target_modules"), printable(target), short_names(linear_modules)));
  };
  for (const std::string& target : config.targets) {
    if (std::ranges::none_of(linear_modules, [&](const auto& module) { return is_called(module, target); }))
      no_module(target);
  }
  const bool is_all = config.pattern == "all-linear";
  std::vector<std::string> modules(linear_modules.begin(), linear_modules.end());
  if (is_all) std::erase(modules, output_layer);
  keep_named(config, "target_modules", config.targets, is_all ? ".*" : config.pattern, true, modules);
  keep_named(config, "exclude_modules", config.excluded, config.excluded_pattern, false, modules);
  keep_layers(config, modules);
  const std::vector<std::string> heads = heads_of(config.task_type);
  std::erase_if(modules,
                [&](const auto& module) { return is_trained(module, config.trained) || is_trained(module, heads); });
  if (modules.empty()) no_module(config.pattern.empty() ? config.targets.front() : config.pattern);
  const auto ranks = values_of<std::size_t>(config, "rank_pattern", config.ranks, config.rank, modules);
  const auto alphas = values_of<double>(config, "alpha_pattern", config.alphas, config.alpha, modules);
  std::vector<AdapterTarget> targets;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto rank = static_cast<double>(ranks[i]);
    targets.push_back({modules[i], ranks[i], alphas[i] / (config.rslora ? std::sqrt(rank) : rank)});
  }
  return targets;
}

std::vector<std::string> trained_modules(const AdapterConfig& config, std::span<const std::string> modules) {
  const std::vector<std::string> heads = heads_of(config.task_type);
  std::set<std::string> trained;
  for (const std::string& name : config.trained) {
    const auto ends = [&](const std::string& module) { return module.ends_with(name); };
    std::ranges::copy_if(modules, std::inserter(trained, trained.end()), ends);
    ensure(std::ranges::any_of(modules, ends) || std::ranges::find(heads, name) != heads.end(),
           fmt::format("{} \"{}\" is no module of this model", key_text(config, "modules_to_save"), printable(name)));
  }
  return {trained.begin(), trained.end()};
}

}  // namespace mylos::data
