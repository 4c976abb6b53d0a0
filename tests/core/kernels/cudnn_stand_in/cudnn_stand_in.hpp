#pragma once

#include <cstddef>
#include <string>

/// Faults that a test injects into the stand-in for cuDNN, and counts that it reads from it. The stand-in gives it out
/// by `cudnn_stand_in_state`.
namespace mylos::stand_in {

struct CudnnState {
  // set by tests
  int status_of_calls = 0;   ///< that the next convolutions return instead of computing
  int status_of_choice = 0;  ///< that the next choices of an algorithm return
  bool only_undeterministic = false, only_rounding = false, only_other_algorithms = false;
  std::size_t extra_workspace = 0;  ///< bytes that every algorithm asks for as well

  // seen by tests
  std::size_t forward = 0, backward_data = 0, backward_filter = 0;  ///< computed so far
  std::size_t descriptors = 0, handles = 0;                         ///< that live
  const void* stream = nullptr;                                     ///< of the last convolution
  std::string mistake;  ///< the first call that the library could not have computed as it was meant
};

}  // namespace mylos::stand_in

extern "C" mylos::stand_in::CudnnState* cudnn_stand_in_state();
