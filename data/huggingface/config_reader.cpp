#include "data/huggingface/config_reader.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "data/huggingface/model_family.hpp"
#include "data/huggingface/model_type.hpp"
#include "data/huggingface/pretrained.hpp"

namespace mylos::data {

std::string json_value_text(const Json& value) { return printable(value.dump(-1, ' ', true)); }

double shortest_decimal(float value) { return std::stod(fmt::format("{}", value)); }

std::vector<double> shortest_decimals(const std::vector<float>& values) {
  std::vector<double> decimals;
  for (const float value : values) decimals.push_back(shortest_decimal(value));
  return decimals;
}

std::string architecture_text(const Json& config) {
  Json named = config.value("architectures", Json());
  if (named.is_array()) named = named.empty() ? Json() : named.front();
  if (named.is_null()) named = config.value("architecture", Json());  // timm's
  return named.is_string() ? fmt::format(" ({})", printable(named.get<std::string>())) : "";
}

ModelConfig::ModelConfig(const KnownModel& known)
    : ModelConfig(parse_json(known.config, known.name), std::string(known.name)) {}

ModelConfig::ModelConfig(const PretrainedModel& model)
    : ModelConfig(Json(model.config()), model.config_path().string()) {}

ConfigReader::ConfigReader(const Json& json, std::string file, std::string model)
    : file_(std::move(file)), model_(std::move(model)), json_(json) {
  ensure(json_.is_object(), fmt::format("{}: not a JSON object", file_));
}

const Json* ConfigReader::find(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::is_null(const char* key) const {
  const auto found = json_.find(key);
  return found != json_.end() && found->is_null();
}

void ConfigReader::read_size(const char* key, std::size_t least, std::size_t most, std::size_t& value,
                             bool required) const {
  const auto* entry = find(key);
  if (entry == nullptr && required) fail(fmt::format("{}: no \"{}\"; {} needs it", file_, key, model_));
  if (entry == nullptr) return;
  if (!entry->is_number_unsigned() || entry->get<std::size_t>() < least || entry->get<std::size_t>() > most) {
    fail(fmt::format("{}: {} = {} is not a whole number from {} to {}", file_, key, json_value_text(*entry), least,
                     most));
  }
  value = entry->get<std::size_t>();
}

void ConfigReader::read_number(const char* key, bool positive, double limit, double& value) const {
  const auto* entry = find(key);
  if (entry == nullptr) return;
  const bool fits = entry->is_number() && entry->get<double>() < limit &&
                    (positive ? entry->get<double>() > 0 : entry->get<double>() >= 0);
  if (!fits) {
    fail(fmt::format("{}: {} = {} is not a number {} 0 and below {}", file_, key, json_value_text(*entry),
                     positive ? "above" : "of at least", limit));
  }
  value = entry->get<double>();
}

void ConfigReader::read_number(const char* key, bool positive, double limit, float& value) const {
  double number = value;
  if (find(key) == nullptr) return;
  read_number(key, positive, limit, number);
  value = static_cast<float>(number);
}

void ConfigReader::read_ids(const char* key, std::size_t count, std::vector<std::int32_t>& ids) const {
  const auto* entry = find(key);
  if (entry == nullptr) return;
  if (!entry->is_array()) {
    std::size_t id = 0;
    read_size(key, 0, count - 1, id, true);
    ids = {static_cast<std::int32_t>(id)};
    return;
  }
  ids.clear();
  for (const Json& one : *entry) {
    if (!one.is_number_unsigned() || one.get<std::size_t>() >= count) {
      fail(fmt::format("{}: {} = {}: expected whole numbers from 0 to {}", file_, key, json_value_text(*entry),
                       count - 1));
    }
    ids.push_back(one.get<std::int32_t>());
  }
}

void ConfigReader::read_flag(const char* key, bool& value) const {
  const auto* entry = find(key);
  if (entry == nullptr) return;
  if (!entry->is_boolean()) {
    fail(fmt::format("{}: {} = {} is neither true nor false", file_, key, json_value_text(*entry)));
  }
  value = entry->get<bool>();
}

void ConfigReader::read_choice(const char* key, std::string_view accepted, std::string_view alias) const {
  const auto* entry = find(key);
  if (entry == nullptr || *entry == accepted || *entry == alias) return;
  fail(fmt::format("{}: {} = {} is not supported; only \"{}\" is", file_, key, json_value_text(*entry), accepted));
}

bool ConfigReader::read_second(const char* key, std::string_view first, std::string_view second, bool absent) const {
  const auto* entry = find(key);
  if (entry == nullptr) return absent;
  if (*entry != first && *entry != second) {
    fail(fmt::format("{}: {} = {} is not supported; only \"{}\" and \"{}\" are", file_, key, json_value_text(*entry),
                     first, second));
  }
  return *entry == second;
}

void ConfigReader::refuse_true(const char* key, std::string_view why) const {
  const auto* entry = find(key);
  if (entry == nullptr || *entry == false) return;
  fail(fmt::format("{}: {} = {} is not supported; only false is{}", file_, key, json_value_text(*entry), why));
}

void ConfigReader::check_model_type(std::string_view wanted) const {
  const std::string type = model_type_of(json_, file_);
  if (type == wanted) return;
  if (type.empty()) {
    fail(fmt::format("{}: no \"model_type\"{}; add \"model_type\": \"{}\" if it is {}", file_, architecture_text(json_),
                     wanted, model_));
  }
  fail(fmt::format("{}: model_type is \"{}\"{}, but \"{}\" is needed here", file_, printable(type),
                   architecture_text(json_), wanted));
}

}  // namespace mylos::data
