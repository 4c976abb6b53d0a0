#pragma once

#include "core/numeric.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a plan knows of the processors it is for. Bytes, operations and seconds.
namespace mylos::train {

/// One GPU, or the threads of one rank on CPUs.
struct Machine {
  std::string name;                       ///< "a100-40"
  std::vector<std::string> aliases = {};  ///< names that published tables use: "a100_40gb"
  std::size_t memory = 0;                 ///< bytes of one
  std::size_t reserved = 0;               ///< of these what a run cannot have: context, libraries, code of kernels
  double float32 = 0.0;                   ///< operations a second of matrix products, by the data sheet; 0 = has none
  double bfloat16 = 0.0;
  double half = 0.0;
  double bandwidth = 0.0;   ///< of its memory, bytes a second
  double link = 0.0;        ///< bytes a second that one moves in collectives inside a node
  std::size_t of_node = 4;  ///< usual number in a node
  std::size_t threads = 0;  ///< that run at once: 2,048 for each of a GPU's multiprocessors
  /// Share of the computing that an exchange beside it takes: NCCL's kernels occupy multiprocessors and bandwidth.
  double contention = 0.0;
  bool is_compared = true;  ///< a plan for this kind was compared with a published or measured run
  bool copies = false;      ///< what computes also moves the bytes inside a node: nothing hides them

  double peak(Precision precision) const;
};

/// NVIDIA's data sheets: V100 SXM2, A100 SXM4, H100 SXM5, H200 SXM, GH200 with HBM3, B200 SXM; dense rates, no
/// sparsity. `link` is what NVLink's generations give NCCL's collectives, about 0.8 of one direction.
std::span<const Machine> gpu_kinds();

/// The kind called `name`; null where there is none.
const Machine* find_gpu_kind(std::string_view name);

/// What a step of one processor takes, and where that is known from.
struct ComputeRate {
  double flops = 0.0;          ///< model operations a second of forward and backward passes
  double bandwidth = 0.0;      ///< bytes a second of what the optimizer moves
  double kept_per_flop = 0.0;  ///< kept_bytes_per_flop of the model that `flops` was measured on; 0 = not known
  std::string origin;          ///< "assumed: 40 % of the data sheet's peak"
};

/// Of a kind nobody has measured. Errors: std::runtime_error where it cannot compute in this precision, naming one in
/// which it can.
ComputeRate assumed_rate(const Machine& machine, Precision precision);

/// How nodes are joined.
struct Network {
  double bandwidth = 25e9;  ///< bytes a second of a node in each direction: 200 Gb/s
  double latency = 5e-6;    ///< seconds of a message between nodes
};

}  // namespace mylos::train
