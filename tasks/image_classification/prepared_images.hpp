#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>

namespace mylos::tasks {

/// Writes the pictures of the data set `data` that can be read, as they are, into the HDF5 file `output`. `notice` gets
/// the counts. Errors: std::runtime_error naming the file, UsageError where `output` is no .h5.
void prepare_image_file(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                        const Notice& notice);

}  // namespace mylos::tasks
