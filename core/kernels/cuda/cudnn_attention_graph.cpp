#include "core/kernels/cuda/cudnn_attention_graph.hpp"

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"

#include <dlfcn.h>

#include <cstring>  // the headers below use std::strlen without it
#include <unordered_map>
#include <vector>

// The headers then call cuDNN through `cudnn_dlhandle`, and do without their copy of a JSON library.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

static_assert(CUDNN_MAJOR == 9, "cuDNN's header has to be of version 9");
static_assert(CUDNN_FRONTEND_VERSION >= 11900,
              "cudnn-frontend 1.19 or later is needed, which knows packed sequences on GPUs of compute capability 8.0");

namespace cudnn_frontend {

void* cudnn_dlhandle = nullptr;

}  // namespace cudnn_frontend

/// Attention as a graph of cudnn-frontend (its operations sdpa and sdpa_backward): packed sequences are ragged tensors,
/// with offsets and lengths in device memory.
namespace mylos::cudnn {
namespace {

namespace fe = cudnn_frontend;

using Attributes = fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Attributes>;

/// The numbers by which arrays are given to a graph.
enum Uid : std::int64_t {
  query_uid = 1,
  key_uid,
  value_uid,
  out_uid,
  statistics_uid,
  dout_uid,
  dquery_uid,
  dkey_uid,
  dvalue_uid,
  query_offsets_uid,
  key_offsets_uid,
  value_offsets_uid,
  out_offsets_uid,
  statistics_offsets_uid,
  query_lengths_uid,
  key_lengths_uid
};

std::int64_t as_int(std::size_t size) { return static_cast<std::int64_t>(size); }

void check(fe::error_t result) {
  if (result.is_bad()) fail(result.get_message());
}

using Device = std::shared_ptr<const fe::DeviceProperties>;

void load_cudnn() {
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = ::dlopen(library_file, RTLD_NOW | RTLD_LOCAL);
  if (fe::cudnn_dlhandle == nullptr) fail(on_one_line(::dlerror()));
}

Device device_of(const std::string& description) {
  load_cudnn();
  auto device = std::make_shared<fe::DeviceProperties>();
  check(device->deserialize({description.begin(), description.end()}));
  return device;
}

fe::DataType_t frontend_type(DataType type) {
  switch (type) {
    case DataType::half:
      return fe::DataType_t::HALF;
    case DataType::bfloat16:
      return fe::DataType_t::BFLOAT16;
    case DataType::float32:
      return fe::DataType_t::FLOAT;
  }
  return fe::DataType_t::NOT_SET;
}

/// Finds the kernels that support a graph. With a device, no handle is needed.
void find_kernels(fe::graph::Graph& graph, cudnnHandle_t handle, const Device& device,
                  const std::vector<fe::HeurMode_t>& modes) {
  if (device) graph.set_device_properties(device);
  check(graph.validate());
  check(device ? graph.build_operation_graph() : graph.build_operation_graph(handle));
  check(graph.create_execution_plans(modes));
  check(graph.check_support());
}

class FrontendGraph final : public AttentionGraph {
 public:
  /// Uses `handle`, or `device` if it is set.
  FrontendGraph(Handle* handle, const Device& device, const AttentionKey& key) : key_(key) {
    graph_.set_io_data_type(frontend_type(key.type))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT)
        .set_sm_version(key.capability);
    describe();
    find_kernels(graph_, reinterpret_cast<cudnnHandle_t>(handle), device, {fe::HeurMode_t::A});
    check(graph_.build_plans());
    std::int64_t bytes = 0;
    check(graph_.get_workspace_size(bytes));
    workspace_ = static_cast<std::size_t>(bytes);
  }

  std::size_t workspace_bytes() const override { return workspace_; }
  void run(Handle* handle, const AttentionArrays& arrays, void* workspace) override;

 private:
  void describe();
  Tensor numbers(const char* name, Uid uid, std::size_t count, fe::DataType_t type);
  Attributes rows_of_heads(const char* name, Uid uid, std::size_t heads, std::size_t columns,
                           const Tensor& offsets) const;
  Attributes statistics(const Tensor& offsets) const;
  template <class Options>
  Options with_masks(Options options, const Tensor& query_lengths, const Tensor& key_lengths) const;
  void give_back(const Tensor& result, Attributes as) const;

  AttentionKey key_;
  fe::graph::Graph graph_;
  std::size_t workspace_ = 0;
};

/// (count) integers in device memory.
Tensor FrontendGraph::numbers(const char* name, Uid uid, std::size_t count, fe::DataType_t type) {
  return graph_.tensor(Attributes()
                           .set_name(name)
                           .set_uid(uid)
                           .set_dim({as_int(count), 1, 1, 1})
                           .set_stride({1, 1, 1, 1})
                           .set_data_type(type));
}

/// (sequences, heads, longest, D): heads in rows of `columns` elements. A sequence begins at its offset.
Attributes FrontendGraph::rows_of_heads(const char* name, Uid uid, std::size_t heads, std::size_t columns,
                                        const Tensor& offsets) const {
  const std::int64_t size = as_int(key_.head_size), row = as_int(columns), longest = as_int(key_.longest);
  return Attributes()
      .set_name(name)
      .set_uid(uid)
      .set_dim({as_int(key_.sequences), as_int(heads), longest, size})
      .set_stride({longest * row, size, row, 1})
      .set_ragged_offset(offsets);
}

/// (sequences, A, longest, 1).
Attributes FrontendGraph::statistics(const Tensor& offsets) const {
  const std::int64_t heads = as_int(key_.heads), longest = as_int(key_.longest);
  Attributes attributes = Attributes()
                              .set_name("statistics")
                              .set_uid(statistics_uid)
                              .set_dim({as_int(key_.sequences), heads, longest, 1})
                              .set_stride({heads * longest, longest, 1, 1})
                              .set_data_type(fe::DataType_t::FLOAT);
  if (key_.has_packed_statistics) attributes.set_stride({heads * longest, 1, heads, 1}).set_ragged_offset(offsets);
  return attributes;
}

/// Sets what both passes have in common: the scale, the lengths, the causal mask and its window.
template <class Options>
Options FrontendGraph::with_masks(Options options, const Tensor& query_lengths, const Tensor& key_lengths) const {
  options.set_name("attention")
      .set_attn_scale(key_.scale)
      .set_padding_mask(true)
      .set_seq_len_q(query_lengths)
      .set_seq_len_kv(key_lengths);
  if (key_.causal) options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  if (key_.window > 0) options.set_diagonal_band_left_bound(key_.window);
  return options;
}

/// Makes a tensor that the graph computes one of its results. Not a reference, because a getter is not const.
void FrontendGraph::give_back(const Tensor& result, Attributes as) const {
  result->set_output(true)
      .set_name(as.get_name())
      .set_uid(as.get_uid())
      .set_dim(as.get_dim())
      .set_stride(as.get_stride());
  if (as.get_data_type() != fe::DataType_t::NOT_SET) result->set_data_type(as.get_data_type());
  if (as.get_ragged_offset()) result->set_ragged_offset(as.get_ragged_offset());
}

void FrontendGraph::describe() {
  const std::size_t sequences = key_.sequences, columns = key_.columns();
  const auto offsets = [&](const char* name, Uid uid) {
    return numbers(name, uid, sequences + 1, fe::DataType_t::INT64);
  };
  const Tensor query_offsets = offsets("query_offsets", query_offsets_uid),
               key_offsets = offsets("key_offsets", key_offsets_uid),
               value_offsets = offsets("value_offsets", value_offsets_uid),
               out_offsets = offsets("out_offsets", out_offsets_uid),
               statistics_offsets =
                   key_.has_packed_statistics ? offsets("statistics_offsets", statistics_offsets_uid) : nullptr,
               query_lengths = numbers("query_lengths", query_lengths_uid, sequences, fe::DataType_t::INT32),
               key_lengths = numbers("key_lengths", key_lengths_uid, sequences, fe::DataType_t::INT32);
  const auto queries = [&](const char* name, Uid uid) {
    return rows_of_heads(name, uid, key_.heads, columns, query_offsets);
  };
  const auto keys = [&](const char* name, Uid uid) {
    return rows_of_heads(name, uid, key_.key_value_heads, columns, key_offsets);
  };
  const auto values = [&](const char* name, Uid uid) {
    return rows_of_heads(name, uid, key_.key_value_heads, columns, value_offsets);
  };
  const auto results = [&](const char* name, Uid uid) {
    return rows_of_heads(name, uid, key_.heads, key_.heads * key_.head_size, out_offsets);
  };
  const Tensor query = graph_.tensor(queries("query", query_uid)), key = graph_.tensor(keys("key", key_uid)),
               value = graph_.tensor(values("value", value_uid));
  if (key_.pass == AttentionPass::forward) {
    const auto options = with_masks(fe::graph::SDPA_attributes().set_generate_stats(true), query_lengths, key_lengths);
    const auto [out, log_sum_exp] = graph_.sdpa(query, key, value, options);
    give_back(out, results("out", out_uid));
    give_back(log_sum_exp, statistics(statistics_offsets));
    return;
  }
  const auto options = with_masks(fe::graph::SDPA_backward_attributes(), query_lengths, key_lengths);
  const auto [dquery, dkey, dvalue] = graph_.sdpa_backward(query, key, value, graph_.tensor(results("out", out_uid)),
                                                           graph_.tensor(results("dout", dout_uid)),
                                                           graph_.tensor(statistics(statistics_offsets)), options);
  give_back(dquery, queries("dquery", dquery_uid));
  give_back(dkey, keys("dkey", dkey_uid));
  give_back(dvalue, values("dvalue", dvalue_uid));
}

void FrontendGraph::run(Handle* handle, const AttentionArrays& arrays, void* workspace) {
  std::unordered_map<std::int64_t, void*> all;
  const auto give = [&](Uid uid, const void* array) { all.emplace(uid, const_cast<void*>(array)); };
  give(query_uid, arrays.query);
  give(key_uid, arrays.key);
  give(value_uid, arrays.value);
  give(out_uid, arrays.out);
  give(statistics_uid, arrays.statistics);
  give(query_offsets_uid, arrays.qkv_offsets);
  give(key_offsets_uid, arrays.qkv_offsets);
  give(value_offsets_uid, arrays.qkv_offsets);
  give(out_offsets_uid, arrays.out_offsets);
  if (key_.has_packed_statistics) give(statistics_offsets_uid, arrays.statistics_offsets);
  give(query_lengths_uid, arrays.lengths);
  give(key_lengths_uid, arrays.lengths);
  if (key_.pass == AttentionPass::backward) {
    give(dout_uid, arrays.dout);
    give(dquery_uid, arrays.dquery);
    give(dkey_uid, arrays.dkey);
    give(dvalue_uid, arrays.dvalue);
  }
  check(graph_.execute(reinterpret_cast<cudnnHandle_t>(handle), all, workspace));
}

}  // namespace

std::unique_ptr<AttentionGraph> make_attention_graph(Handle* handle, const AttentionKey& key) {
  load_cudnn();
  return std::make_unique<FrontendGraph>(handle, nullptr, key);
}

std::string describe_device() {
  load_cudnn();
  fe::DeviceProperties device;
  check(device.set_device_id(0).build());
  std::vector<std::uint8_t> description;
  check(device.serialize(description));
  return {description.begin(), description.end()};
}

std::unique_ptr<AttentionGraph> plan_attention_graph(const std::string& description, const AttentionKey& key) {
  return std::make_unique<FrontendGraph>(nullptr, device_of(description), key);
}

void check_weight_gradient(const std::string& description, const WeightGradientKey& key) {
  fe::graph::Graph graph;
  graph.set_io_data_type(frontend_type(key.type))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(key.capability);
  // Dimensions are in the order NCHW, and channels are next to each other in memory.
  const auto pixels = [&](const char* name, std::size_t channels, std::size_t size) {
    const std::int64_t c = as_int(channels), s = as_int(size);
    return graph.tensor(
        Attributes().set_name(name).set_dim({as_int(key.images), c, s, s}).set_stride({s * s * c, 1, s * c, c}));
  };
  const std::size_t out_size = (key.size + 2 * key.padding - key.kernel) / key.stride + 1;
  const std::int64_t padding = as_int(key.padding), stride = as_int(key.stride), in = as_int(key.in_channels),
                     side = as_int(key.kernel);
  const Tensor gradient =
      graph.conv_wgrad(pixels("gradient", key.out_channels, out_size), pixels("input", key.in_channels, key.size),
                       fe::graph::Conv_wgrad_attributes()
                           .set_padding({padding, padding})
                           .set_stride({stride, stride})
                           .set_dilation({1, 1}));
  gradient->set_output(true)
      .set_data_type(frontend_type(key.result))
      .set_dim({as_int(key.out_channels), in, side, side})
      .set_stride({side * side * in, 1, side * in, in});
  find_kernels(graph, nullptr, device_of(description), {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
}

}  // namespace mylos::cudnn
