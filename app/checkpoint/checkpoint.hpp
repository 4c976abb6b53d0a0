#pragma once

#include "app/options/arguments.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"

#include <filesystem>
#include <string>

/// What mylos checkpoint does. Nothing here starts Kokkos or MPI.
namespace mylos::app {

/// The file that a path of the command line means: a checkpoint, or the latest of a run's or a checkpoints directory.
/// Errors: std::runtime_error where there is none.
std::filesystem::path checkpoint_at(const std::string& path);

/// Writes the model of a checkpoint as a Hugging Face directory.
int export_checkpoint(const Arguments& arguments);

/// Compares two checkpoints tensor by tensor; exit code 1 where they differ.
int diff_checkpoints(const Arguments& arguments);

}  // namespace mylos::app
