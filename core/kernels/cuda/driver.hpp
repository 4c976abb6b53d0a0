#pragma once

/// The NVIDIA driver's library, which login nodes and build machines do not have: it is looked for when it is first
/// needed, not when the program starts.
namespace mylos::cuda {

/// libcuda.so.1 is there.
bool has_driver();

}  // namespace mylos::cuda
