#pragma once

#include "core/kernels/cuda/cudnn_library.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

/// Graphs of cuDNN that compute attention over packed sequences. Host code without Kokkos: only
/// cudnn_attention_graph.cpp includes the headers of cudnn-frontend, which take long to compile.
namespace mylos::cudnn {

enum class AttentionPass { forward, backward };

/// Identifies a graph. Dims as in core/kernels/attention/attention.hpp.
struct AttentionKey {
  AttentionPass pass = AttentionPass::forward;
  DataType type = DataType::bfloat16;
  std::size_t sequences = 0, longest = 0;  ///< upper bounds
  std::size_t heads = 0, key_value_heads = 0, head_size = 0;
  float scale = 1.0f;
  bool causal = false;
  int window = 0;                     ///< of a causal mask: keys that a row sees, with its own; 0: all before it
  bool has_packed_statistics = true;  ///< (T, A), otherwise (sequences, A, longest)
  int capability = 0;                 ///< of the device; 90 is 9.0

  std::size_t columns() const { return (heads + 2 * key_value_heads) * head_size; }
  auto operator<=>(const AttentionKey&) const = default;
};

/// The arrays of a pass, in device memory. Query, key and value heads are parts of rows of `columns()` elements. A
/// forward pass writes `out` and `statistics`, the log-sum-exp of scaled scores; a backward pass reads them and `dout`,
/// and writes the gradients.
struct AttentionArrays {
  const void *query = nullptr, *key = nullptr, *value = nullptr;
  void* out = nullptr;
  float* statistics = nullptr;
  const void* dout = nullptr;
  void *dquery = nullptr, *dkey = nullptr, *dvalue = nullptr;
  /// (sequences + 1) first element of each sequence in rows of qkv, of `out`, and of packed statistics; sequences
  /// beyond those of the batch begin where it ends.
  const std::int64_t *qkv_offsets = nullptr, *out_offsets = nullptr, *statistics_offsets = nullptr;
  const std::int32_t* lengths = nullptr;  ///< (sequences) rows of each sequence; 0 beyond those of the batch
};

class AttentionGraph {
 public:
  virtual ~AttentionGraph() = default;

  /// Bytes of device memory that run() needs.
  virtual std::size_t workspace_bytes() const = 0;
  /// Launches the pass on the stream of `handle`. Errors: std::runtime_error with cuDNN's reason.
  virtual void run(Handle* handle, const AttentionArrays& arrays, void* workspace) = 0;
};

/// Makes the graph for cuDNN, which must have been loaded, and chooses its kernels. Errors: std::runtime_error with
/// cuDNN's reason if it does not support the pass.
std::unique_ptr<AttentionGraph> make_attention_graph(Handle* handle, const AttentionKey& key);

/// Returns cuDNN's description of the process's device, from which it plans graphs on machines without one. Needs cuDNN
/// 9.8. Errors: std::runtime_error with cuDNN's reason.
std::string describe_device();
/// Makes a graph for the device of `description`, which is not there, so the graph does not run. Errors: as
/// make_attention_graph, or if this is no description of a device.
std::unique_ptr<AttentionGraph> plan_attention_graph(const std::string& description, const AttentionKey& key);

/// A convolution without dilation, and the gradient of its weights: sums over images and positions of 16-bit products.
struct WeightGradientKey {
  DataType type = DataType::bfloat16;  ///< of the input and of the gradient of the output
  DataType result = DataType::float32;
  std::size_t images = 0, size = 0;  ///< `size` rows and columns of pixels
  std::size_t in_channels = 0, out_channels = 0;
  std::size_t kernel = 1, stride = 1, padding = 0;
  int capability = 0;
};
/// Errors: as above, if cuDNN has no kernel for it on the device of `description`.
void check_weight_gradient(const std::string& description, const WeightGradientKey& key);

}  // namespace mylos::cudnn
