#pragma once

#include <filesystem>
#include <string>

namespace mylos::tests {

/// Why TensorBoard, the Python package that scripts/dependencies --test gets, cannot be asked; empty where it can.
std::string tensorboard_obstacle();

/// What it reads of the runs below `directory`, as JSON (tests/support/read_events.py).
std::string tensorboard_reads(const std::filesystem::path& directory);

}  // namespace mylos::tests
