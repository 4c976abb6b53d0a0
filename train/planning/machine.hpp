#pragma once

#include "core/base/gpu_architecture.hpp"
#include "core/base/precision.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Hardware data for planning: sizes in bytes, rates per second, times in seconds.
namespace mylos::train {

/// One GPU, or the threads of one rank on CPUs.
struct Machine {
  std::string name = {};                  ///< "a100-40"
  std::vector<std::string> aliases = {};  ///< names used in published tables: "a100_40gb"
  std::size_t memory = 0;                 ///< bytes of memory
  std::size_t reserved = 0;               ///< bytes that a run cannot use: context, libraries, kernel code
  double float32 = 0.0;                   ///< peak matrix-product FLOP/s from the data sheet; 0 = not supported
  double bfloat16 = 0.0;
  double half = 0.0;
  double bandwidth = 0.0;       ///< memory bandwidth, bytes per second
  double link = 0.0;            ///< bytes per second in collectives within a node
  std::size_t connections = 0;  ///< bytes of NCCL's connections for the collectives of one group; as others report
  std::size_t of_node = 4;      ///< typical number per node
  std::size_t threads = 0;      ///< concurrent threads: 2,048 per GPU multiprocessor
  GpuArchitecture architecture = {};
  /// Fraction of compute throughput lost while a collective runs: NCCL's kernels occupy multiprocessors and bandwidth.
  double contention = 0.0;
  bool is_compared = true;  ///< plans for this kind were compared with a published or measured run
  bool copies = false;      ///< the compute units also copy the bytes within a node, so nothing hides the exchange

  double peak(Precision precision) const;
};

/// Kinds of GPU: V100 SXM2, A100 SXM4, H100 SXM5, H200 SXM, GH200 with HBM3 and B200 SXM from NVIDIA's data sheets; one
/// of the two GPUs of an MI250X, MI300A and MI300X from AMD's: compute units times 1.7 or 2.1 GHz times the operations
/// of a matrix core per cycle, 256 in float, 1,024 (MI250X) or 2,048 in 16 bits. Rates are dense, without sparsity.
/// `link` is the rate that collectives reach over the links of a node, about 0.8 of one direction.
std::span<const Machine> gpu_kinds();

/// Returns the kind called `name`, or null if there is none.
const Machine* find_gpu_kind(std::string_view name);

/// The processing rate used to predict steps, and its origin.
struct ComputeRate {
  double flops = 0.0;          ///< model operations per second in the forward and backward passes
  double bandwidth = 0.0;      ///< bytes per second moved by the optimizer
  double kept_per_flop = 0.0;  ///< kept_bytes_per_flop of the model that `flops` was measured with; 0 = unknown
  std::string origin;          ///< "assumed: 40 % of the data sheet's peak"
};

/// Returns the rate assumed for a kind that has not been measured. Errors: std::runtime_error if it does not support
/// this precision; the message names one that it supports.
ComputeRate assumed_rate(const Machine& machine, Precision precision);

/// The network between nodes.
struct Network {
  double bandwidth = 25e9;  ///< bytes per second of a node in each direction: 200 Gb/s
  double latency = 5e-6;    ///< seconds per message between nodes
};

}  // namespace mylos::train
