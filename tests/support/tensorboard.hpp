#pragma once

#include <filesystem>
#include <string>

namespace mylos::tests {

/// Returns the reason why TensorBoard, the Python package that `scripts/dependencies --test` installs, cannot be run.
/// Empty if it can.
std::string tensorboard_obstacle();

/// Returns TensorBoard's view of the runs below `directory`, as JSON (tests/support/read_events.py).
std::string tensorboard_reads(const std::filesystem::path& directory);

}  // namespace mylos::tests
