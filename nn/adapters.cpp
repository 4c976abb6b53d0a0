#include "nn/adapters.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace mylos::nn {
namespace {

std::string module_of(std::string_view tensor) { return std::string(tensor.substr(0, tensor.rfind('.'))); }

/// Returns A or B.
ParameterTensor adapter_tensor(const ParameterTensor& weight, std::string name, std::size_t rows, std::size_t columns,
                               Initializer initializer, AdapterRule rule) {
  ParameterTensor tensor;
  tensor.name = std::move(name);
  tensor.shape = {rows, columns};
  tensor.unit = weight.unit;
  tensor.size = rows * columns;
  tensor.initializer = initializer;
  tensor.adapter = rule;
  return tensor;
}

void check_rank(const Adapter& adapter, const ParameterTensor& weight) {
  const std::size_t widest = std::min(weight.shape[0], weight.shape[1]);
  ensure(adapter.rank > 0 && adapter.rank <= widest,
         fmt::format("the adapter of {} has rank {}: expected 1 to {}, the width of the layer", adapter.module,
                     adapter.rank, widest));
}

}  // namespace

std::vector<std::string> linear_modules(const ParameterTable& table) {
  std::vector<std::string> modules;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (tensor.is_linear && !tensor.in_head) modules.push_back(module_of(tensor.name));
  }
  return modules;
}

bool is_in(const std::vector<std::string>& modules, const ParameterTensor& tensor) {
  return std::ranges::any_of(modules, [&](const std::string& module) { return tensor.name.starts_with(module + "."); });
}

void add_adapters(ParameterTable& table, const Adapters& adapters) {
  // Layers of a stack read the same input: their matrices A, which are one after the other too, are multiplied as one.
  std::vector<ParameterTensor> added, up;
  const std::size_t stacks = std::ranges::max(table.tensors(), {}, &ParameterTensor::stack).stack;
  for (const ParameterTensor& weight : table.tensors()) {
    if (!weight.is_linear || weight.in_head) continue;
    const auto adapter = std::ranges::find(adapters.layers, module_of(weight.name), &Adapter::module);
    if (adapter == adapters.layers.end()) continue;
    check_rank(*adapter, weight);
    const std::size_t out = weight.shape[0], in = weight.shape[1];
    const AdapterRule rule{adapter->scale, adapters.dropout};
    const Initializer uniform{Initializer::Kind::uniform, 1.0f / std::sqrt(static_cast<float>(in))};
    added.push_back(adapter_tensor(weight, adapter->module + adapter_a, adapter->rank, in, uniform, rule));
    added.back().stack = weight.stack == 0 ? 0 : stacks + weight.stack;
    up.push_back(adapter_tensor(weight, adapter->module + adapter_b, out, adapter->rank, {}, rule));
  }
  require(up.size() == adapters.layers.size(), "adapters: one is for a module that is no linear layer of the model");
  std::ranges::move(up, std::back_inserter(added));
  const auto is_frozen = [&](const ParameterTensor& tensor) { return !is_in(adapters.trained, tensor); };
  table.adapt(std::move(added), is_frozen);
}

}  // namespace mylos::nn
