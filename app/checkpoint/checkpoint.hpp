#pragma once

#include "app/options/arguments.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"

#include <filesystem>
#include <string>

/// The verbs of `mylos checkpoint`. They do not start Kokkos or MPI.
namespace mylos::app {

/// Resolves a path of the command line to a checkpoint file: the file itself, or the latest checkpoint in a
/// directory of a run or of checkpoints. Errors: std::runtime_error if there is none.
std::filesystem::path checkpoint_at(const std::string& path);

/// Writes the model of a checkpoint as a Hugging Face directory.
int export_checkpoint(const Arguments& arguments);

/// Compares two checkpoints tensor by tensor; returns 1 if they differ.
int diff_checkpoints(const Arguments& arguments);

}  // namespace mylos::app
