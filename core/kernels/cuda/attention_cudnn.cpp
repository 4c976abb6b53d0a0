#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/attention/cudnn_attention.hpp"
#include "core/kernels/attention/cudnn_attention_sizes.hpp"
#include "core/kernels/cuda/cudnn_attention_graph.hpp"
#include "core/kernels/gpu/device_stream.hpp"
#include "core/kernels/products/recently_used.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

/// Attention by cuDNN over packed sequences. A kernel describes the batch in kernel scratch, and cuDNN reads qkv and
/// writes the results in place. Graphs are kept for the bounds of batches (cudnn_attention_sizes.hpp).
namespace mylos::attention {
namespace {

/// The first versions with packed sequences as they are used here: 64-bit offsets, grouped heads, and packed statistics
/// on GPUs of compute capability 9.0; and on those of 8.0 to 8.9.
constexpr std::size_t first_version = 90600, first_version_on_8 = 91801;

/// Large enough for both passes of training and evaluation with a dozen bounds each.
constexpr std::size_t most_graphs = 64;

std::string too_old(std::size_t needed, const std::string& where) {
  return fmt::format("cuDNN {} is too old: attention{} needs {} or later; load it, or do without: {} auto",
                     cudnn::library().version, where, cudnn::version_text(needed), setting("attention"));
}

/// On devices of compute capability 8.0 to 8.9, cuDNN's backward pass does not read packed statistics.
bool has_packed_statistics(int capability) { return capability / 10 == 9 || capability / 10 == 10; }

/// Returns "backward pass over 32 sequences of up to 384 tokens, 12 heads (12 of keys) of 64 in bfloat16".
std::string to_string(const cudnn::AttentionKey& key) {
  const std::string window = key.window == 0 ? "" : fmt::format(", a window of {}", key.window);
  return fmt::format("{} pass over {} sequences of up to {} tokens, {} heads ({} of keys) of {} in {}{}",
                     key.pass == cudnn::AttentionPass::forward ? "forward" : "backward", key.sequences, key.longest,
                     key.heads, key.key_value_heads, key.head_size,
                     key.type == cudnn::DataType::half ? "half" : "bfloat16", window);
}

/// Calls `body`, and adds to its errors which pass failed.
template <class Body>
auto explained(const cudnn::AttentionKey& key, const Body& body) {
  std::string reason;
  try {
    return body();
  } catch (const std::exception& error) {
    reason = on_one_line(error.what());
  }
  fail(fmt::format("attention by cuDNN {}: {}: {}; use another {}", cudnn::library().version, to_string(key), reason,
                   setting("attention")));
}

/// The library's handle and the graphs of this process. Never destroyed: at exit, the device may be gone.
struct Graphs {
  const cudnn::Library& library = cudnn::library();
  cudnn::Handle* handle = nullptr;
  RecentlyUsed<cudnn::AttentionKey, std::unique_ptr<cudnn::AttentionGraph>> graphs{most_graphs};

  Graphs() { cudnn::check(library, library.create(&handle), "starting"); }

  cudnn::AttentionGraph& get(const cudnn::AttentionKey& key) {
    return *graphs.get(key, [&] { return explained(key, [&] { return cudnn::make_attention_graph(handle, key); }); });
  }
};

Graphs& graphs() {
  static auto* const all = new Graphs;
  return *all;
}

cudnn::AttentionKey key_of(const ExecutionSpace& space, const AttentionShape& shape, const CudnnBounds& bounds,
                           cudnn::AttentionPass pass, Precision precision) {
  const int capability = cuda::capability_of(space);
  return {.pass = pass,
          .type = precision == Precision::float16 ? cudnn::DataType::half : cudnn::DataType::bfloat16,
          .sequences = bounds.sequences,
          .longest = bounds.longest,
          .heads = shape.heads,
          .key_value_heads = shape.key_value_heads,
          .head_size = shape.head_size,
          .scale = shape.scale,
          .causal = shape.causal,
          .window = static_cast<std::size_t>(shape.window) < bounds.longest ? shape.window : 0,
          .has_packed_statistics = has_packed_statistics(capability),
          .capability = capability};
}

/// Fills the arrays that describe the sequences of a batch, one element of each per index.
struct DescribeSequences {
  ConstVector<std::size_t> starts;
  std::size_t samples, sequences;  ///< of the batch, and of the graph
  std::size_t qkv_columns, out_columns, heads;
  std::int64_t *qkv_offsets, *out_offsets, *statistics_offsets;
  std::int32_t* lengths;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i) const {
    const std::size_t start = starts(i < samples ? i : samples);
    qkv_offsets[i] = static_cast<std::int64_t>(start * qkv_columns);
    out_offsets[i] = static_cast<std::int64_t>(start * out_columns);
    statistics_offsets[i] = static_cast<std::int64_t>(start * heads);
    if (i < sequences) lengths[i] = i < samples ? static_cast<std::int32_t>(starts(i + 1) - start) : 0;
  }
};

/// Copies statistics (sequences, A, longest) from or to packed ones (T, A), one element per index. Rows beyond a
/// sequence become 0 there.
struct CopyStatistics {
  ConstVector<std::size_t> starts;
  std::size_t samples, heads, longest;
  float *padded, *packed;
  bool packs;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i) const {
    const std::size_t row = i % longest, head = i / longest % heads, sample = i / longest / heads;
    const bool is_in_batch = sample < samples && row < starts(sample + 1) - starts(sample);
    float* const at = is_in_batch ? packed + (starts(sample) + row) * heads + head : nullptr;
    if (!packs) {
      padded[i] = is_in_batch ? *at : 0.0f;
    } else if (is_in_batch) {
      *at = padded[i];
    }
  }
};

template <class Functor>
void launch_over(const char* label, const ExecutionSpace& space, std::size_t size, std::size_t bytes,
                 const Functor& functor) {
  Kokkos::parallel_for(with_work(label, work_of(size, 0.0, static_cast<double>(bytes))),
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>>(space, 0, size), functor);
}

/// A pass over one batch: its graph, and the arrays in kernel scratch.
class CudnnPass {
 public:
  CudnnPass(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
            cudnn::AttentionPass pass, Precision precision)
      : space_(space),
        sequences_(sequences),
        key_(key_of(space, shape, cudnn_bounds(sequences.sample_ids.size(), sequences.longest), pass, precision)),
        bounds_{key_.sequences, key_.longest},
        positions_(cudnn_scratch(bounds_, shape.heads, key_.has_packed_statistics)),
        graph_(graphs().get(key_)) {
    auto* const memory = static_cast<std::byte*>(
        cuda::scratch_of(space, positions_.workspace + graph_.workspace_bytes() + cudnn_alignment));
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % cudnn_alignment;
    scratch_ = beyond == 0 ? memory : memory + (cudnn_alignment - beyond);
  }

  /// Launches the pass, called `label` in profiles. `statistics` is log_sum_exp (T, A).
  void run(const char* label, const std::optional<Work>& work, cudnn::AttentionArrays arrays, float* statistics);

 private:
  template <class Number>
  Number* array_at(std::size_t at) const {
    return reinterpret_cast<Number*>(scratch_ + at);
  }
  void describe(cudnn::AttentionArrays& arrays) const;
  void copy_statistics(float* packed, bool packs) const;

  const ExecutionSpace& space_;
  const PackedSequences& sequences_;
  cudnn::AttentionKey key_;
  CudnnBounds bounds_;
  CudnnScratch positions_;
  cudnn::AttentionGraph& graph_;
  std::byte* scratch_ = nullptr;
};

void CudnnPass::describe(cudnn::AttentionArrays& arrays) const {
  const DescribeSequences functor{.starts = sequences_.starts,
                                  .samples = sequences_.sample_ids.size(),
                                  .sequences = bounds_.sequences,
                                  .qkv_columns = key_.columns(),
                                  .out_columns = key_.heads * key_.head_size,
                                  .heads = key_.heads,
                                  .qkv_offsets = array_at<std::int64_t>(positions_.qkv_offsets),
                                  .out_offsets = array_at<std::int64_t>(positions_.out_offsets),
                                  .statistics_offsets = array_at<std::int64_t>(positions_.statistics_offsets),
                                  .lengths = array_at<std::int32_t>(positions_.lengths)};
  launch_over("mylos::Attention::describe_sequences", space_, bounds_.sequences + 1, 4 * sizeof(std::int64_t), functor);
  arrays.qkv_offsets = functor.qkv_offsets;
  arrays.out_offsets = functor.out_offsets;
  arrays.statistics_offsets = functor.statistics_offsets;
  arrays.lengths = functor.lengths;
}

void CudnnPass::copy_statistics(float* packed, bool packs) const {
  const CopyStatistics functor{.starts = sequences_.starts,
                               .samples = sequences_.sample_ids.size(),
                               .heads = key_.heads,
                               .longest = key_.longest,
                               .padded = array_at<float>(positions_.statistics),
                               .packed = packed,
                               .packs = packs};
  launch_over("mylos::Attention::copy_statistics", space_, key_.sequences * key_.heads * key_.longest,
              2 * sizeof(float), functor);
}

void CudnnPass::run(const char* label, const std::optional<Work>& work, cudnn::AttentionArrays arrays,
                    float* statistics) {
  const bool copies = !key_.has_packed_statistics, is_forward = key_.pass == cudnn::AttentionPass::forward;
  describe(arrays);
  if (copies && !is_forward) copy_statistics(statistics, false);
  arrays.statistics = copies ? array_at<float>(positions_.statistics) : statistics;
  Graphs& all = graphs();
  cudnn::check(all.library, all.library.set_stream(all.handle, cuda::stream_of(space_)), "choosing a stream");
  std::uint64_t id = 0;
  Kokkos::Profiling::beginParallelFor(with_work(label, work), Kokkos::Tools::Experimental::device_id(space_), &id);
  explained(key_, [&] { graph_.run(all.handle, arrays, array_at<void>(positions_.workspace)); });
  Kokkos::Profiling::endParallelFor(id);
  if (copies && is_forward) copy_statistics(statistics, true);
}

/// The query, key and value heads of rows of qkv or its gradient.
template <class T>
struct HeadParts {
  T *query, *key, *value;

  HeadParts(T* rows, const AttentionShape& shape)
      : query(rows), key(rows + shape.heads * shape.head_size), value(key + shape.key_value_heads * shape.head_size) {}
};

/// Returns the arrays that both passes have.
template <class T>
cudnn::AttentionArrays arrays_of(const AttentionShape& shape, const ConstMatrix<T>& qkv, T* out) {
  const HeadParts<const T> heads(qkv.data(), shape);
  cudnn::AttentionArrays arrays;
  arrays.query = heads.query;
  arrays.key = heads.key;
  arrays.value = heads.value;
  arrays.out = out;
  return arrays;
}

/// Errors: std::invalid_argument if there is dropout, or a matrix is not 16-byte aligned or has gaps between its rows.
template <class T>
void check_arguments(const DropoutKey& dropout, std::initializer_list<ConstMatrix<T>> matrices) {
  require(!dropout.active(), "attention by cuDNN: it has no dropout");
  constexpr std::uintptr_t alignment = 16;
  for (const ConstMatrix<T>& matrix : matrices) {
    require(reinterpret_cast<std::uintptr_t>(matrix.data()) % alignment == 0,
            "attention by cuDNN: an array does not begin at a multiple of 16 bytes");
    require(matrix.stride(0) == matrix.extent(1), "attention by cuDNN: an array has gaps between its rows");
  }
}

bool is_empty(const PackedSequences& sequences) {
  return sequences.sample_ids.extent(0) == 0 || sequences.longest == 0;
}

}  // namespace

const bool has_cudnn_attention = true;

std::string cudnn_attention_obstacle() {
  if (std::string obstacle = cudnn::obstacle(); !obstacle.empty()) return obstacle;
  return cudnn::library().number < first_version ? too_old(first_version, "") : "";
}

std::string cudnn_attention_obstacle(const GpuArchitecture& device) {
  if (std::string obstacle = cudnn_attention_obstacle(); !obstacle.empty()) return obstacle;
  if (device.is_gpu()) {
    if (std::string obstacle = cudnn_device_obstacle(device); !obstacle.empty()) return obstacle;
  }
  const bool is_on_8 = device.number / 10 == 8;
  if (!is_on_8 || cudnn::library().number >= first_version_on_8) return {};
  return too_old(first_version_on_8, fmt::format(" on GPUs of compute capability 8.{}", device.number % 10));
}

void prepare_cudnn(const ExecutionSpace& space, const AttentionShape& shape, Precision precision, std::size_t samples,
                   std::size_t longest, bool with_backward) {
  // The others are made when they are met: the cache has to keep these, and those of evaluations.
  if (graphs().graphs.size() >= most_graphs / 2) return;
  const CudnnBounds bounds = cudnn_bounds(samples, longest);
  graphs().get(key_of(space, shape, bounds, cudnn::AttentionPass::forward, precision));
  if (with_backward) graphs().get(key_of(space, shape, bounds, cudnn::AttentionPass::backward, precision));
}

template <class T>
void cudnn_forward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                   const DropoutKey& dropout, const ConstMatrix<T>& qkv, const Matrix<T>& out,
                   const Matrix<float>& log_sum_exp) {
  if (is_empty(sequences)) return;
  check_arguments<T>(dropout, {qkv, out});
  const cudnn::AttentionArrays arrays = arrays_of<T>(shape, qkv, out.data());
  CudnnPass(space, shape, sequences, cudnn::AttentionPass::forward, precision_of<T>)
      .run("mylos::Attention::cudnn_forward", forward_work(shape, sequences, sizeof(T)), arrays, log_sum_exp.data());
}

template <class T>
void cudnn_backward(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                    const DropoutKey& dropout, const ConstMatrix<T>& qkv, const ConstMatrix<T>& out,
                    const ConstMatrix<float>& log_sum_exp, const ConstMatrix<T>& dout, const Matrix<T>& dqkv) {
  if (is_empty(sequences)) return;
  check_arguments<T>(dropout, {qkv, out, dout, dqkv});
  cudnn::AttentionArrays arrays = arrays_of<T>(shape, qkv, const_cast<T*>(out.data()));
  const HeadParts<T> gradients(dqkv.data(), shape);
  arrays.dout = dout.data();
  arrays.dquery = gradients.query;
  arrays.dkey = gradients.key;
  arrays.dvalue = gradients.value;
  CudnnPass(space, shape, sequences, cudnn::AttentionPass::backward, precision_of<T>)
      .run("mylos::Attention::cudnn_backward", backward_work(shape, sequences, sizeof(T)), arrays,
           const_cast<float*>(log_sum_exp.data()));
}

#define MYLOS_INSTANTIATE(T)                                                                                        \
  template void cudnn_forward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,              \
                                 const DropoutKey&, const ConstMatrix<T>&, const Matrix<T>&, const Matrix<float>&); \
  template void cudnn_backward<T>(const ExecutionSpace&, const AttentionShape&, const PackedSequences&,             \
                                  const DropoutKey&, const ConstMatrix<T>&, const ConstMatrix<T>&,                  \
                                  const ConstMatrix<float>&, const ConstMatrix<T>&, const Matrix<T>&);
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::attention
