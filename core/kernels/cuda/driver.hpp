#pragma once

/// Access to the NVIDIA driver's library, libcuda.so.1. The library is loaded at first use and not at program start,
/// because login nodes and build machines do not have it.
namespace mylos::cuda {

/// Returns true if the library can be loaded.
bool has_driver();

}  // namespace mylos::cuda
