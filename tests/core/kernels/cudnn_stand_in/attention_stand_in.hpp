#pragma once

#include "core/kernels/cuda/cudnn_attention_graph.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// Settings and observations of the stand-in for cuDNN's graphs of attention.
namespace mylos::stand_in {

struct AttentionState {
  // set by tests
  int capability = 90;        ///< of the device
  std::string refusal;        ///< error of the next graphs that are made; empty: none
  std::string failure;        ///< error of the next passes; empty: none
  std::size_t workspace = 0;  ///< bytes that graphs ask for

  // seen by tests
  std::vector<cudnn::AttentionKey> made;  ///< the graphs so far
  std::size_t forward = 0, backward = 0;  ///< passes computed so far
  std::size_t scratch = 0;                ///< the largest request for kernel scratch, in bytes
  std::string mistake;                    ///< the first argument that cuDNN would have misread
};

AttentionState& attention_state();

}  // namespace mylos::stand_in
