#pragma once

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/pretrained.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Writes weights that are in memory.
namespace mylos::data {

/// A tensor to be written: product(shape) float values in row-major order.
struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::span<const float> values;
};

/// Returns names and shapes. Throws std::invalid_argument if the number of values does not match a shape.
inline std::vector<TensorShape> shapes_of(std::span<const NamedTensor> tensors) {
  std::vector<TensorShape> shapes;
  for (const auto& tensor : tensors) {
    const auto count = element_count(tensor.shape, tensor.name);
    require(count == tensor.values.size(), fmt::format("tensor \"{}\" of shape {} has {} values, not {}", tensor.name,
                                                       shape_text(tensor.shape), tensor.values.size(), count));
    shapes.push_back({tensor.name, tensor.shape});
  }
  return shapes;
}

/// Writes `tensors` in the given order, as `type`.
inline void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              Precision type = Precision::float32) {
  SafetensorsWriter writer(path, shapes_of(tensors), type);
  for (const auto& tensor : tensors) writer.write(tensor.values);
  writer.commit();
}

/// Writes a model directory.
inline void write_pretrained(const std::filesystem::path& directory, const OrderedJson& config,
                             std::span<const ModelFile> files, std::span<const NamedTensor> weights,
                             const WeightFormat& format = {}) {
  PretrainedWriter writer(directory, config, files, shapes_of(weights), format);
  for (const auto& tensor : weights) writer.write(tensor.values);
  writer.commit();
}

}  // namespace mylos::data
