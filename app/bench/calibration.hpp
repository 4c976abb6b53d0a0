#pragma once

#include "core/numeric.hpp"
#include "nn/model.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// What `bench step` has measured of a machine, kept for plans.
namespace mylos::app {

/// The size of a model. A plan takes the measurement of the model that is nearest in size.
struct ModelSize {
  std::size_t parameters = 0;  ///< of all rows of the table
  double flops_per_row = 0.0;  ///< operations of a training pass over one sample of one row
};
ModelSize model_size(const nn::Model& model);
/// How far two sizes are apart; 0 = the same.
double distance(const ModelSize& one, const ModelSize& other);

struct Calibration {
  std::string device;       ///< the GPU's name, or the CPU's as its kernel tells it
  bool host = true;         ///< a CPU
  std::size_t threads = 1;  ///< of the rank
  Precision precision = Precision::float32;
  ModelSize model = {};
  double flops = 0.0;          ///< model operations a second of passes, without the optimizer
  double bandwidth = 0.0;      ///< bytes a second of a stream of its memory
  double kept_per_flop = 0.0;  ///< train::kept_bytes_per_flop of the model; 0 = not told
  double products = 0.0;       ///< operations a second that the model's products reach alone; 0 = not told
};

/// The name of what computes here. Kokkos runs.
std::string device_name();

nlohmann::ordered_json to_json(const Calibration& calibration);
/// Errors: std::runtime_error that begins with `name`, where the value is not of that form, or of the form of earlier
/// programs.
Calibration parse_calibration(const nlohmann::json& value, const std::string& name);

/// Into the user's cache, over an earlier one of the same device, threads, precision and model. What cannot be written
/// is left.
void save_calibration(const Calibration& calibration);
/// All of the cache; a file that cannot be read counts as none.
std::vector<Calibration> saved_calibrations();
/// Operations a second that a rank reaches in the products of a model of `run`'s sizes, with as many threads, on its
/// device and in its precision; 0 where that was not measured.
double measured_products(const Calibration& run, std::span<const Calibration> measured);
/// The one in what `bench step --json` printed. Errors: std::runtime_error naming the file.
Calibration read_calibration(const std::filesystem::path& file);

}  // namespace mylos::app
