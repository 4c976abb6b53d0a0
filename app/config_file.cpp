#include "app/config_file.hpp"

#include "app/parse.hpp"
#include "app/usage_error.hpp"
#include "data/files.hpp"
#include "data/text_file.hpp"
#include "train/gemm_selection.hpp"
#include "train/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

using Json = nlohmann::ordered_json;

Json parse_object(const std::filesystem::path& file) {
  const std::string text = data::read_text_file(file);
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw UsageError(fmt::format("--config {}: not JSON", file.string()));
  if (!parsed.is_object()) throw UsageError(fmt::format("--config {}: not a JSON object", file.string()));
  return parsed;
}

/// The value for a message.
std::string value_text(const Json& value) {
  if (value.is_null()) return "unset";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The value as it would be typed. Errors: UsageError where it is a list or an object.
std::string typed_value(const Json& value, const std::string& key, const std::filesystem::path& file) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_structured()) {
    throw UsageError(fmt::format("{}: key {}: expected a number, a string, true or false", file.string(), key));
  }
  return value.dump();
}

const Option& option_of_key(const std::string& key, const Command& command, const std::filesystem::path& file) {
  const auto is_key = [&](const Option& option) { return option.belongs_to(command.bit) && option.print; };
  const Option* named = find_option(key);
  if (named != nullptr && is_key(*named)) return *named;
  std::vector<std::string> names;
  for (const Option& option : option_table()) {
    if (is_key(option)) names.push_back(option.name);
  }
  throw UsageError(fmt::format("{}: unknown key \"{}\"{}", file.string(), data::printable(key),
                               suggestion(normalized_name(key), names, "")));
}

/// What the recorded run chose and a run like it would choose again: who computes its matrix products.
void read_resolved(const Json& resolved, const std::filesystem::path& file, Arguments& arguments) {
  if (!resolved.is_object() || !resolved.contains("gemm")) return;
  arguments.run.engine.gemm.recorded =
      train::parse_gemm_choice(resolved["gemm"], fmt::format("{}: {}.gemm", file.string(), resolved_key));
}

}  // namespace

Json settings_json(const Command& command, const Arguments& arguments) {
  Json settings = Json::object();
  for (const Option& option : option_table()) {
    if (option.belongs_to(command.bit) && option.print) settings[option.name] = option.print(arguments);
  }
  return settings;
}

void read_config_file(const std::filesystem::path& file, const Command& command, Arguments& arguments) {
  const Json config = parse_object(file);
  for (const auto& [key, value] : config.items()) {
    if (key == resolved_key) read_resolved(value, file, arguments);
    if (key == program_key || key == resolved_key || key == train::OutputDirectory::state_key) continue;
    const Option& option = option_of_key(key, command, file);
    if (value.is_null()) continue;
    set_option(arguments, option, typed_value(value, key, file), fmt::format("{}: {}", file.string(), option.name));
  }
}

std::vector<std::string> differing_settings(const Json& saved, const Command& command, const Arguments& arguments,
                                            std::span<const std::string_view> may_differ) {
  std::vector<std::string> differing;
  const Json settings = settings_json(command, arguments);
  for (const auto& [name, value] : settings.items()) {
    if (name == "output" || !saved.contains(name) || saved[name] == value) continue;
    if (std::ranges::find(may_differ, name) != may_differ.end()) continue;
    differing.push_back(fmt::format("{} {}, now {}", name, value_text(saved[name]), value_text(value)));
  }
  return differing;
}

void take_recorded_choices(const Json& saved, const std::filesystem::path& file, Arguments& arguments) {
  train::GemmConfig& gemm = arguments.run.engine.gemm;
  const bool was_tf32 = saved.contains("tf32") && saved["tf32"] == true;
  if (arguments.given.contains("gemm") || was_tf32 != gemm.tf32 || !saved.contains(resolved_key)) return;
  read_resolved(saved[resolved_key], file, arguments);
  // A run that goes on in another build, on the CPU after a GPU, chooses again.
  if (gemm.recorded && !train::is_built(*gemm.recorded)) gemm.recorded.reset();
}

}  // namespace mylos::app
