#include "data/huggingface/adapter_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "data/tokenizer/json/regular_expression.hpp"

namespace mylos::data {
namespace {

constexpr std::string_view prefix = "base_model.model.";  // PEFT's model holds LoRA's, which holds the base

constexpr DirectoryNames adapter_names{adapter_config_file, adapter_weights_file, nullptr};

std::string base_tensor_name(std::string_view name) {
  return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

constexpr TensorNaming naming{.model = "the adapter", .canonical = base_tensor_name};

std::vector<float> values_of(const TensorReader& read, std::size_t count) {
  std::vector<float> values(count);
  read(0, values);
  return values;
}

/// Compiles `before` + text + `after`, to be matched from the start of a module's name. Throws std::runtime_error with
/// `key` and the text.
Pattern compiled(const AdapterConfig& config, const char* key, const std::string& text, const char* before,
                 const char* after) {
  const std::string name = fmt::format("{} \"{}\"", key_text(config, key), printable(text));
  try {
    return {fmt::format("\\A{}{}{}", before, text, after), name};
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: {}", name, error.what()));
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

std::vector<std::string> modules_of(std::span<const TensorSpec> tensors) {
  std::set<std::string> modules;
  for (const TensorSpec& tensor : tensors) {
    for (std::size_t dot = tensor.name.find('.'); dot != std::string::npos; dot = tensor.name.find('.', dot + 1)) {
      modules.insert(tensor.name.substr(0, dot));
    }
  }
  return {modules.begin(), modules.end()};
}

std::string adapter_tensor_name(std::string_view tensor) { return fmt::format("{}{}", prefix, tensor); }

std::vector<TensorSpec> adapter_tensors(const AdapterConfig& config, std::span<const AdapterTarget> targets,
                                        std::span<const std::string> trained, std::span<const TensorSpec> base) {
  std::vector<TensorSpec> tensors;
  for (const auto& [module, rank, scale] : targets) {
    const auto weight = std::ranges::find(base, module + ".weight", &TensorSpec::name);
    require(weight != base.end() && weight->shape.size() == 2, fmt::format("{} is not a linear module", module));
    const std::size_t out = weight->shape[0], in = weight->shape[1];
    ensure(rank <= std::min(out, in),
           fmt::format("{} {} of {} is above {}, the smaller side of its weight {}", key_text(config, "r"), rank,
                       module, std::min(out, in), shape_text(weight->shape)));
    tensors.push_back({module + ".lora_A.weight", {rank, in}});
    tensors.push_back({module + ".lora_B.weight", {out, rank}});
  }
  for (const TensorSpec& tensor : base) {
    const bool is_trained =
        std::ranges::any_of(trained, [&](const auto& module) { return tensor.name.starts_with(module + "."); });
    if (is_trained) tensors.push_back({tensor.name, tensor.shape});
  }
  std::ranges::sort(tensors, {}, &TensorSpec::name);
  return tensors;
}

std::vector<TensorShape> written_adapter_tensors(std::span<const TensorSpec> tensors) {
  std::vector<TensorShape> written;
  for (const TensorSpec& tensor : tensors) written.push_back({adapter_tensor_name(tensor.name), tensor.shape});
  return written;
}

WeightFormat adapter_format(Precision precision) {
  return {.precision = precision, .shard_bytes = std::numeric_limits<std::uint64_t>::max(), .names = adapter_names};
}

AdapterWeights::AdapterWeights(const FileReader& files, const std::filesystem::path& directory,
                               std::span<const TensorSpec> wanted)
    : files_(files, directory, naming.canonical, adapter_names) {
  match_weights(files_, wanted, naming, directory.string());
}

MergedAdapter::MergedAdapter(const FileReader& files, const std::filesystem::path& directory,
                             const AdapterConfig& config, std::span<const std::string> linear_modules,
                             std::span<const TensorSpec> base)
    : targets_(adapter_targets(config, linear_modules)),
      weights_(files, directory, adapter_tensors(config, targets_, trained_modules(config, modules_of(base)), base)) {}

TensorReader MergedAdapter::merged(const TensorSpec& tensor, TensorReader base) const {
  if (weights_.contains(tensor.name)) return weights_.reader(tensor.name);
  const auto target =
      std::ranges::find_if(targets_, [&](const AdapterTarget& one) { return one.module + ".weight" == tensor.name; });
  if (target == targets_.end()) return base;
  const auto& [module, rank, scale] = *target;
  const std::size_t out = tensor.shape[0], in = tensor.shape[1];
  return [a = values_of(weights_.reader(module + ".lora_A.weight"), rank * in),
          b = values_of(weights_.reader(module + ".lora_B.weight"), out * rank), rank = rank, in,
          scale = static_cast<float>(scale), base = std::move(base)](std::size_t first, std::span<float> values) {
    base(first, values);
    std::vector<float> sums(in);
    for (std::size_t done = 0; done < values.size();) {
      const std::size_t row = (first + done) / in, column = (first + done) % in;
      const std::size_t count = std::min(in - column, values.size() - done);
      std::ranges::fill(sums, 0.0F);
      for (std::size_t k = 0; k < rank; ++k) {
        const float factor = b[row * rank + k];
        for (std::size_t i = 0; i < count; ++i) sums[i] += factor * a[k * in + column + i];
      }
      for (std::size_t i = 0; i < count; ++i) values[done + i] += scale * sums[i];
      done += count;
    }
  };
}

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
  if (modules.empty()) no_module(config.pattern);
  keep_named(config, "exclude_modules", config.excluded, config.excluded_pattern, false, modules);
  keep_layers(config, modules);
  const std::vector<std::string> heads = heads_of(config.task_type);
  std::erase_if(modules,
                [&](const auto& module) { return is_trained(module, config.trained) || is_trained(module, heads); });
  ensure(!modules.empty(),
         fmt::format("{} names only modules that {}", key_text(config, "target_modules"),
                     config.file.empty() ? setting("lora-train") + " trains whole"
                                         : "exclude_modules, layers_to_transform or modules_to_save leave out"));
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
