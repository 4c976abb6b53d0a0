#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/kernels/cuda/cudnn_attention_graph.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// cudnn_plans --describe FILE: writes cuDNN's description of this machine's GPU (9.8 or later).
/// cudnn_plans FILE CAPABILITY: plans the graphs of attention for a described GPU with the real cuDNN and without a
/// GPU, and asks whether it supports convolutions' gradients of weights. CAPABILITY is 90 for 9.0. Prints one line for
/// each: its workspace, or why cuDNN does not support it. Exits with 1 if a graph of attention is not supported.
namespace mylos::bench {
namespace {

std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(file + ": it cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The heads of the models that docs/gpu.md names, those of 64 in both types, with bounds of small and large batches.
std::vector<cudnn::AttentionKey> attention_graphs(int capability) {
  struct Heads {
    std::size_t heads, key_value_heads, head_size;
    bool causal;
  };
  struct Bounds {
    std::size_t sequences, longest;
  };
  std::vector<cudnn::AttentionKey> keys;
  for (const Heads& heads : {Heads{12, 12, 32, false}, Heads{12, 12, 64, false}, Heads{16, 16, 64, false},
                             Heads{32, 4, 64, true}, Heads{32, 8, 128, true}, Heads{32, 32, 128, true}}) {
    for (const Bounds& bounds : {Bounds{1, 64}, Bounds{32, 384}, Bounds{8, 2048}, Bounds{2, 8192}}) {
      for (const cudnn::DataType type : {cudnn::DataType::bfloat16, cudnn::DataType::half}) {
        if (type == cudnn::DataType::half && heads.head_size != 64) continue;
        for (const cudnn::AttentionPass pass : {cudnn::AttentionPass::forward, cudnn::AttentionPass::backward}) {
          keys.push_back({.pass = pass,
                          .type = type,
                          .sequences = bounds.sequences,
                          .longest = bounds.longest,
                          .heads = heads.heads,
                          .key_value_heads = heads.key_value_heads,
                          .head_size = heads.head_size,
                          .scale = 0.125f,
                          .causal = heads.causal,
                          .has_packed_statistics = capability / 10 != 8,
                          .capability = capability});
        }
      }
    }
  }
  return keys;
}

/// The kinds of convolutions of a ResNet-50 for 64 images of 224 x 224 pixels.
std::vector<cudnn::WeightGradientKey> weight_gradients() {
  const auto convolution = [](std::size_t size, std::size_t in, std::size_t out, std::size_t kernel,
                              std::size_t stride) {
    return cudnn::WeightGradientKey{.images = 64,
                                    .size = size,
                                    .in_channels = in,
                                    .out_channels = out,
                                    .kernel = kernel,
                                    .stride = stride,
                                    .padding = kernel / 2};
  };
  return {convolution(224, 8, 64, 7, 2),    convolution(56, 64, 64, 1, 1),   convolution(56, 64, 64, 3, 1),
          convolution(56, 256, 512, 1, 2),  convolution(28, 128, 128, 3, 1), convolution(14, 256, 256, 3, 1),
          convolution(14, 1024, 256, 1, 1), convolution(14, 512, 512, 3, 2), convolution(7, 512, 2048, 1, 1)};
}

/// Prints what `plan` returns, or its error. Returns whether there was none.
template <class Plan>
bool print_plan(const std::string& what, const Plan& plan) {
  try {
    fmt::print("{}: {}\n", what, plan());
    return true;
  } catch (const std::exception& error) {
    constexpr std::size_t longest = 200;
    fmt::print("{}: not supported: {}\n", what, on_one_line(error.what()).substr(0, longest));
    return false;
  }
}

int plan_all(const std::string& device, int capability) {
  int missing = 0;
  for (const cudnn::AttentionKey& key : attention_graphs(capability)) {
    const std::string what = fmt::format(
        "attention {} {} {}x{} heads {}/{} of {}{}", key.pass == cudnn::AttentionPass::forward ? "forward" : "backward",
        key.type == cudnn::DataType::half ? "half" : "bfloat16", key.sequences, key.longest, key.heads,
        key.key_value_heads, key.head_size, key.causal ? " causal" : "");
    if (!print_plan(what, [&] {
          return fmt::format("{} bytes of workspace", cudnn::plan_attention_graph(device, key)->workspace_bytes());
        }))
      ++missing;
  }
  for (cudnn::WeightGradientKey key : weight_gradients()) {
    for (const cudnn::DataType result : {cudnn::DataType::bfloat16, cudnn::DataType::float32}) {
      key.result = result;
      key.capability = capability;
      const std::string what =
          fmt::format("gradient of {0}x{0} weights in {4}, {1} to {2} channels, {3}x{3} pixels, stride {5}", key.kernel,
                      key.in_channels, key.out_channels, key.size,
                      result == cudnn::DataType::float32 ? "float" : "bfloat16", key.stride);
      print_plan(what, [&] {
        cudnn::check_weight_gradient(device, key);
        return std::string("supported");
      });
    }
  }
  return missing == 0 ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "--describe") {
    std::ofstream out(words[1], std::ios::binary);
    out << cudnn::describe_device();
    if (!out.flush()) fail(words[1] + ": it cannot be written");
    return 0;
  }
  if (words.size() != 2) fail("usage: cudnn_plans --describe FILE, or cudnn_plans FILE CAPABILITY");
  return plan_all(read(words[0]), std::atoi(words[1].c_str()));
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  try {
    return mylos::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "cudnn_plans: error: {}\n", error.what());
    return 1;
  }
}
