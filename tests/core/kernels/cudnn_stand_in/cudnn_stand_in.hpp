#pragma once

#include <cstddef>
#include <string>

/// Faults that a test injects into the stand-in for cuDNN, and counters that it reads. The stand-in provides this state
/// through `cudnn_stand_in_state`.
namespace mylos::stand_in {

struct CudnnState {
  // set by tests
  int status_of_calls = 0;   ///< returned by the next convolutions, which then do not compute
  int status_of_choice = 0;  ///< returned by the next algorithm selections
  bool only_undeterministic = false, only_rounding = false, only_other_algorithms = false;
  std::size_t extra_workspace = 0;  ///< bytes added to the workspace of every algorithm

  // seen by tests
  std::size_t forward = 0, backward_data = 0, backward_filter = 0;  ///< computed so far
  std::size_t descriptors = 0, handles = 0;                         ///< currently existing
  const void* stream = nullptr;                                     ///< stream of the last convolution
  std::string mistake;  ///< the first incorrect call, for which the library would not have computed the intended result
};

}  // namespace mylos::stand_in

extern "C" mylos::stand_in::CudnnState* cudnn_stand_in_state();
