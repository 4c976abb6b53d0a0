#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>

namespace mylos::tasks {

/// Copies the readable pictures of the data set `data`, unchanged, into the HDF5 file `output`. `notice` gets the
/// counts. Errors: std::runtime_error naming the file, UsageError if the name of `output` does not end in .h5.
void prepare_image_file(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                        const Notice& notice);

}  // namespace mylos::tasks
