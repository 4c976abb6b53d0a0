#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// The points of a sweep: runs of `mylos train` whose options differ.
namespace mylos::app {

/// Slurm's default limit of an array (MaxArraySize 1001).
inline constexpr std::size_t most_points = 1000;

struct SweepPoint {
  std::string name = {};                 ///< of its directory: "003-learning-rate=1e-05,seed=2"
  nlohmann::ordered_json varied = {};    ///< {"learning-rate": 1e-05, "seed": 2}
  nlohmann::ordered_json settings = {};  ///< all settings of its run, as in a run.json
};

struct Sweep {
  std::vector<SweepPoint> points;
  std::vector<std::string> remarks;  ///< one line for each accepted option that has no effect
};

/// The files in a sweep's directory: its points, and for each point a configuration and a run's directory.
std::filesystem::path sweep_file(const std::filesystem::path& sweep);
std::filesystem::path point_run(const std::filesystem::path& sweep, const std::string& name);
std::filesystem::path point_settings(const std::filesystem::path& sweep, const std::string& name);

/// Reads {"settings": {option: value}, "sweep": {option: [value, value]}}, whose points are all combinations, or
/// {"sweep": [{option: value}, {option: value}]}. The options are those of train, by any name that it accepts. Checks
/// each point as train would, its model and the presence of its data. `sweep` is the directory of the runs. Errors:
/// UsageError with the file, the point and the option.
Sweep read_sweep_settings(const std::filesystem::path& file, const std::filesystem::path& sweep);

/// Orders and names the points as in the sweep that is already in the directory `sweep`, if there is one; new points
/// follow. Errors: std::runtime_error if the directory holds anything else, or a point that is not among `points` or
/// has other settings there.
void join_existing_sweep(const std::filesystem::path& sweep, std::vector<SweepPoint>& points);

/// Reads names and varied options of the points of the sweep in a directory. Errors: std::runtime_error.
std::vector<SweepPoint> read_sweep(const std::filesystem::path& sweep);

/// Writes the points and their configurations.
void write_sweep(const std::filesystem::path& sweep, const std::vector<SweepPoint>& points);

}  // namespace mylos::app
