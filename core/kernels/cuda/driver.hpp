#pragma once

/// The NVIDIA driver's library. Login nodes and build machines do not have it, so it is loaded at first use, not when
/// the program starts.
namespace mylos::cuda {

/// Returns whether libcuda.so.1 can be loaded.
bool has_driver();

}  // namespace mylos::cuda
