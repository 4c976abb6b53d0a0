#include "app/bench/calibration.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/stable_hash.hpp"
#include "core/device.hpp"
#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::app {
namespace {

constexpr const char* key = "calibration";
/// Below this distance two models count as equal in size, because the text of a calibration is rounded.
constexpr double same_size = 1e-9;

constexpr const char* kept_key = "kept_bytes_per_flop";
constexpr const char* products_key = "product_flops_per_second";

std::filesystem::path cache() { return data::cache_folder("bench"); }

/// Reads a rate in operations or bytes per second.
double machine_rate(const nlohmann::json& object, const char* member, const std::string& name) {
  constexpr double least = 1e6, most = 1e18;  // no machine is outside these bounds
  const auto found = object.find(member);
  ensure(found != object.end() && found->is_number() && found->get<double>() >= least && found->get<double>() <= most,
         fmt::format("{}: \"{}\" is not a number from 1e6 to 1e18", name, member));
  return found->get<double>();
}

std::size_t positive_count(const nlohmann::json& object, const char* member, const JsonLocation& location,
                           const std::string& name) {
  const std::size_t count = count_member(object, member, location);
  ensure(count > 0, fmt::format("{}: {}: expected a whole number above 0", name, member));
  return count;
}

Precision precision_named(const std::string& text, const std::string& name) {
  const std::optional<Precision> precision = parse_precision(text);
  ensure(precision.has_value(), fmt::format("{}: \"precision\" is {}", name, text));
  return *precision;
}

}  // namespace

ModelSize model_size(const nn::Model& model) {
  ModelSize size{.flops_per_row = model.training_flops({.samples = 1, .rows = 1, .longest = 1})};
  for (const ParameterTensor& row : model.table().tensors()) size.parameters += row.size;
  return size;
}

double distance(const ModelSize& one, const ModelSize& other) {
  return std::abs(std::log(static_cast<double>(one.parameters) / static_cast<double>(other.parameters))) +
         std::abs(std::log(one.flops_per_row / other.flops_per_row));
}

std::string device_name() { return runs_on_host ? processor_name() : usable_devices().front().name; }

nlohmann::ordered_json to_json(const Calibration& calibration) {
  nlohmann::ordered_json object = {{"device", calibration.device},
                                   {"host", calibration.host},
                                   {"threads", calibration.threads},
                                   {"precision", to_string(calibration.precision)},
                                   {"parameters", calibration.model.parameters},
                                   {"flops_per_row", calibration.model.flops_per_row},
                                   {"flops_per_second", calibration.flops},
                                   {"bytes_per_second", calibration.bandwidth}};
  if (calibration.kept_per_flop > 0.0) object[kept_key] = calibration.kept_per_flop;
  if (calibration.products > 0.0) object[products_key] = calibration.products;
  return object;
}

Calibration parse_calibration(const nlohmann::json& value, const std::string& name) {
  const JsonLocation location(name);
  const nlohmann::json& object = as_object(value, location);
  ensure(!object.contains("layers") || object.contains("parameters"),
         fmt::format("{}: an earlier program wrote this calibration; run `mylos bench step` again", name));
  Calibration calibration;
  calibration.device = string_member(object, "device", location);
  const nlohmann::json host = object.value("host", nlohmann::json(true));
  ensure(host.is_boolean(), fmt::format("{}: \"host\" is neither true nor false", name));
  calibration.host = host;
  calibration.threads = positive_count(object, "threads", location, name);
  calibration.precision = precision_named(string_member(object, "precision", location), name);
  calibration.model.parameters = positive_count(object, "parameters", location, name);
  calibration.model.flops_per_row =
      as_number(member(object, "flops_per_row", location), JsonLocation(location, "flops_per_row"));
  ensure(calibration.model.flops_per_row > 0.0, fmt::format("{}: \"flops_per_row\" is not a number above 0", name));
  calibration.flops = machine_rate(object, "flops_per_second", name);
  calibration.bandwidth = machine_rate(object, "bytes_per_second", name);
  if (object.contains(kept_key)) {
    calibration.kept_per_flop = as_number(object[kept_key], JsonLocation(location, kept_key));
    ensure(calibration.kept_per_flop > 0.0, fmt::format("{}: \"{}\" is not a number above 0", name, kept_key));
  }
  if (object.contains(products_key)) calibration.products = machine_rate(object, products_key, name);
  return calibration;
}

void save_calibration(const Calibration& calibration) {
  const std::string what =
      fmt::format("{} threads {} {} {} {}", calibration.device, calibration.threads, to_string(calibration.precision),
                  calibration.model.parameters, calibration.model.flops_per_row);
  try {
    std::filesystem::create_directories(cache());
    write_text(cache() / fmt::format("step-{:016x}.json", stable_hash(what)),
               nlohmann::ordered_json{{key, to_json(calibration)}}.dump(1) + "\n");
  } catch (const std::exception&) {
    // Ignored: without a writable cache (a read-only or full home), plans lack this calibration.
  }
}

std::vector<Calibration> saved_calibrations() {
  std::vector<Calibration> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(cache(), none)) {
    if (!entry.path().filename().string().starts_with("step-")) continue;
    try {
      all.push_back(read_calibration(entry.path()));
    } catch (const std::exception&) {
      continue;  // written by another version
    }
  }
  return all;
}

double measured_products(const Calibration& run, std::span<const Calibration> measured) {
  const auto found = std::ranges::find_if(measured, [&](const Calibration& one) {
    return one.device == run.device && one.precision == run.precision && distance(one.model, run.model) < same_size &&
           (!one.host || one.threads == run.threads);
  });
  return found == measured.end() ? 0.0 : found->products;
}

Calibration read_calibration(const std::filesystem::path& file) {
  const nlohmann::json content = read_json(file);
  ensure(content.is_object() && content.contains(key),
         fmt::format("{}: \"{}\" is missing; expected the output of `mylos bench step --json`", file.string(), key));
  return parse_calibration(content[key], file.string());
}

}  // namespace mylos::app
