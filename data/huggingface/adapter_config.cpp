#include "data/huggingface/adapter_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/pretrained.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t most_rank = 1U << 20U;

/// The keys of PEFT 0.21 with which it computes or trains something else if they have another value.
constexpr const char* fixed_values = R"({"alora_invocation_tokens": null, "arrow_config": null, "bias": "none",
  "ensure_weight_tying": false, "init_lora_weights": true, "kasa_config": null, "layer_replication": null,
  "lora_bias": false, "monteclora_config": null, "peft_type": "LORA", "target_parameters": null,
  "trainable_token_indices": null, "use_bdlora": null, "use_dora": false, "use_qalora": false, "velora_config": null})";
/// The other keys, with their values in an adapter that says nothing else: those that are read, and those that mean
/// nothing for linear modules once A and B have values.
constexpr const char* default_values = R"({"alpha_pattern": {}, "auto_mapping": null, "base_model_name_or_path": null,
  "corda_config": null, "eva_config": null, "exclude_modules": null, "fan_in_fan_out": false, "inference_mode": true,
  "layers_pattern": null, "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 8, "lora_dropout": 0.0,
  "lora_ga_config": null, "megatron_config": null, "megatron_core": "megatron.core", "modules_to_save": null,
  "peft_version": "0.21.2", "qalora_group_size": 16, "r": 8, "rank_pattern": {}, "revision": null,
  "target_modules": null, "task_type": null, "use_rslora": false})";
/// The ways to start A and B that change neither the base nor what is trained, beside true and false.
constexpr std::array starts = {"gaussian", "eva", "orthogonal"};
/// The values of a key that asks for nothing.
constexpr std::array nothings = {"null", "false", "\"\"", "[]", "{}"};

/// Parses the file. Refuses a key that comes twice: the parser would keep only the last.
OrderedJson parse(const std::string& text, const std::string& file) {
  std::set<std::string> names;
  std::string repeated;
  const Json json = parse_json(text, file, [&](const std::string& name) {
    if (!names.insert(name).second) repeated = name;
  });
  ensure(json.is_object(), fmt::format("{}: not a JSON object", file));
  ensure(repeated.empty(), fmt::format("{}: the key \"{}\" comes twice", file, printable(repeated)));
  return try_parse_ordered_json(text);
}

/// Refuses values with which PEFT would compute something else, and reports unknown keys that have a value.
void check_keys(const Json& json, const std::string& file, const Notice& notice) {
  const Json fixed = try_parse_json(fixed_values), others = try_parse_json(default_values);
  std::vector<std::string> unknown;
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(nothings, value.dump()) != nothings.end()) continue;
    if (!fixed.contains(key) && !others.contains(key)) unknown.push_back(key);
    if (value == fixed.value(key, value)) continue;
    const bool is_start = key == "init_lora_weights";
    if (is_start && std::ranges::find(starts, value) != starts.end()) continue;
    fail(fmt::format("{}: {} = {} is not supported; it must be {}{}", file, key, json_value_text(value),
                     fixed[key].dump(), is_start ? fmt::format(", false, {}", fmt::join(starts, ", ")) : ""));
  }
  if (unknown.empty()) return;
  notice(fmt::format("{}: keys that are not known are ignored: {}", file, listed(unknown)));
}

/// Reads a list of strings or, if there is a `text` to put it in, a string. They stay empty if the key is absent.
void read_names(const ConfigReader& reader, const char* key, std::vector<std::string>& names, std::string* text) {
  const Json* value = reader.find(key);
  if (value == nullptr) return;
  const JsonLocation file(reader.file()), location(file, key);
  if (text != nullptr && value->is_string()) *text = value->get<std::string>();
  if (text != nullptr && value->is_string()) return;
  for (const Json& name : as_list(*value, location)) names.push_back(as_string(name, location));
}

/// Reads the fields that choose modules.
void read_modules(const ConfigReader& reader, AdapterConfig& config) {
  read_names(reader, "target_modules", config.targets, &config.pattern);
  ensure(!config.targets.empty() || !config.pattern.empty(),
         fmt::format("{}: no \"target_modules\"; an adapter needs it", config.file));
  read_names(reader, "exclude_modules", config.excluded, &config.excluded_pattern);
  read_names(reader, "modules_to_save", config.trained, nullptr);
  std::string list;
  read_names(reader, "layers_pattern", config.layer_lists, &list);
  if (!list.empty()) config.layer_lists.push_back(list);
  const Json* layers = reader.find("layers_to_transform");
  if (layers == nullptr) return;
  ensure(config.pattern.empty(), fmt::format("{}: layers_to_transform needs a list of target_modules", config.file));
  const JsonLocation file(config.file), location(file, "layers_to_transform");
  for (const Json& layer : layers->is_array() ? *layers : Json::array({*layers})) {
    config.layers.push_back(as_count(layer, location));
  }
}

/// Calls `read` for each expression of rank_pattern or alpha_pattern, in the order of the file.
template <class Read>
void read_patterns(const OrderedJson& json, const ConfigReader& reader, const char* key, const Read& read) {
  const Json* value = reader.find(key);
  if (value == nullptr) return;
  const ConfigReader values(*value, fmt::format("{}: {}", reader.file(), key), "an adapter");
  for (const auto& [expression, unused] : json[key].items()) read(values, expression);
}

/// Formats a whole number as Python formats an int.
OrderedJson number(double value) {
  if (value != std::floor(value) || std::abs(value) > 1e15) return value;
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string key_text(const AdapterConfig& config, std::string_view key) {
  if (!config.file.empty()) return fmt::format("{}: {}", config.file, key);
  if (key == "target_modules") return setting("lora-targets");
  return key == "modules_to_save" ? setting("lora-train") : setting("lora-rank");
}

bool is_adapter_directory(const std::filesystem::path& directory) {
  return is_present(directory / adapter_config_file);
}

AdapterConfig read_adapter_config(const FileReader& files, const std::filesystem::path& directory,
                                  const Notice& notice) {
  AdapterConfig config;
  config.file = (directory / adapter_config_file).string();
  const OrderedJson ordered = parse(read_text_file(files, directory / adapter_config_file), config.file);
  const Json json(ordered);
  check_keys(json, config.file, notice);
  const ConfigReader reader(json, config.file, "an adapter");
  ensure(reader.find("peft_type") != nullptr, fmt::format("{}: no \"peft_type\"; an adapter needs it", config.file));
  const JsonLocation file(config.file);
  for (const auto& [key, text] : {std::pair("base_model_name_or_path", &config.base), {"task_type", &config.task_type}})
    if (const Json* value = reader.find(key)) *text = as_string(*value, JsonLocation(file, key));
  reader.read_size("r", 1, most_rank, config.rank, true);
  reader.read_number("lora_alpha", true, most_adapter_alpha, config.alpha);
  reader.read_number("lora_dropout", false, 1.0, config.dropout);
  reader.read_flag("use_rslora", config.rslora);
  read_patterns(ordered, reader, "rank_pattern", [&](const ConfigReader& values, const std::string& expression) {
    std::size_t& rank = config.ranks.emplace_back(expression, 0).second;
    values.read_size(expression.c_str(), 1, most_rank, rank, true);
  });
  read_patterns(ordered, reader, "alpha_pattern", [&](const ConfigReader& values, const std::string& expression) {
    double& alpha = config.alphas.emplace_back(expression, config.alpha).second;
    values.read_number(expression.c_str(), true, most_adapter_alpha, alpha);
  });
  read_modules(reader, config);
  return config;
}

OrderedJson adapter_config_json(const AdapterConfig& config) {
  Json values = try_parse_json(default_values);
  values.update(try_parse_json(fixed_values));
  OrderedJson json(values);  // sorted by key, as PEFT does
  const auto set = [&](const char* key, const auto& value) {
    if (!value.empty()) json[key] = value;
  };
  set("base_model_name_or_path", config.base);
  set("task_type", config.task_type);
  json["r"] = config.rank;
  json["lora_alpha"] = number(config.alpha);
  json["lora_dropout"] = config.dropout;
  json["use_rslora"] = config.rslora;
  set("target_modules", config.targets);
  set("target_modules", config.pattern);
  set("exclude_modules", config.excluded);
  set("exclude_modules", config.excluded_pattern);
  set("modules_to_save", config.trained);
  set("layers_to_transform", config.layers);
  set("layers_pattern", config.layer_lists);
  for (const auto& [expression, rank] : config.ranks) json["rank_pattern"][expression] = rank;
  for (const auto& [expression, alpha] : config.alphas) json["alpha_pattern"][expression] = number(alpha);
  return json;
}

}  // namespace mylos::data
