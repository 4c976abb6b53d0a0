#pragma once

#include "core/base/precision.hpp"
#include "nn/model.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Measurements of a machine by `bench step`, stored for `mylos plan`.
namespace mylos::app {

/// The size of a model. A plan uses the measurement of the model nearest in size.
struct ModelSize {
  std::size_t parameters = 0;  ///< elements of all parameter tensors
  double flops_per_row = 0.0;  ///< operations of a training pass over one sample of one row
};
ModelSize model_size(const nn::Model& model);
/// Returns the distance between two sizes; 0 if they are equal.
double distance(const ModelSize& one, const ModelSize& other);

struct Calibration {
  std::string device;       ///< name of the GPU, or of the CPU as its kernel reports it
  bool host = true;         ///< true for a CPU
  std::size_t threads = 1;  ///< per rank
  Precision precision = Precision::float32;
  ModelSize model = {};
  double flops = 0.0;          ///< model operations per second in forward and backward passes, without the optimizer
  double bandwidth = 0.0;      ///< bytes per second of a memory stream
  double kept_per_flop = 0.0;  ///< train::kept_bytes_per_flop of the model; 0 if unknown
  double products = 0.0;       ///< operations per second of the model's matrix products alone; 0 if unknown
};

/// Returns the name of the device that computes. Requires Kokkos to be initialized.
std::string device_name();

nlohmann::ordered_json to_json(const Calibration& calibration);
/// Errors: std::runtime_error, beginning with `name`, if the value is malformed or was written by an earlier version
/// with another format.
Calibration parse_calibration(const nlohmann::json& value, const std::string& name);

/// Writes to the user's cache, replacing an earlier calibration of the same device, threads, precision and model. Does
/// nothing if the cache cannot be written.
void save_calibration(const Calibration& calibration);
/// Returns all calibrations of the cache; skips files that cannot be read.
std::vector<Calibration> saved_calibrations();
/// Returns the operations per second that a rank reaches in the matrix products of a model of `run`'s size, with the
/// same threads (on CPUs), device and precision; 0 if that was not measured.
double measured_products(const Calibration& run, std::span<const Calibration> measured);
/// Reads the calibration from the output of `bench step --json`. Errors: std::runtime_error naming the file.
Calibration read_calibration(const std::filesystem::path& file);

}  // namespace mylos::app
