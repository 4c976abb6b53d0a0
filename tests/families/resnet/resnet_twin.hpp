#pragma once

#include "families/resnet/resnet_model.hpp"
#include "tests/support/engine.hpp"

#include <string>
#include <vector>

/// A straightforward implementation of ResNet in double precision, one pixel at a time: the reference for the whole
/// model.
namespace mylos::tests {

/// The head of every model that has a twin.
inline constexpr families::ResnetHead twin_head{.labels = 5, .label_smoothing = 0.125f};

/// Groups of pseudo-random images, with the given group sizes.
struct ResnetTwinBatch {
  std::vector<std::size_t> groups;
  std::size_t image_size;  ///< values per image
  Values pixels;           ///< NHWC
  std::vector<std::int32_t> labels;

  ResnetTwinBatch(const families::ResnetShape& shape, std::vector<std::size_t> group_sizes);

  std::size_t images() const { return labels.size(); }
  /// Creates the batch of groups [begin, end).
  void fill(std::size_t begin, std::size_t end, Batch& batch) const;
  BatchShape shape() const;
};

class ResnetTwin {
 public:
  /// Copies the engine's parameters and state.
  ResnetTwin(const families::ResnetShape& shape, const Engine& engine, const ResnetTwinBatch& batch);

  /// Returns tensor `row` of the table, to be perturbed.
  Values& parameter(std::size_t row) { return parameters_[row]; }

  Values logits() const;          ///< (T, labels), with the statistics of each group
  Values running_logits() const;  ///< with the running statistics
  Values losses() const;          ///< (S), with the statistics of each group
  Values losses_of(const Values& logits) const;

 private:
  struct Maps {
    std::size_t height, width, channels;
    Values values;  ///< (T, height, width, channels)
  };

  const Values& named(const std::string& name) const { return parameters_[table_.find(name)]; }
  Values logits(bool running) const;
  Maps convolved(const std::string& name, const Maps& x, std::size_t out, std::size_t kernel, std::size_t stride,
                 bool running) const;
  void normalize(const std::string& name, Maps& x, bool running) const;
  Maps pooled(const Maps& x) const;
  Maps block(const std::string& name, const Maps& x, std::size_t out, std::size_t stride, bool running) const;

  families::ResnetShape shape_;
  const ParameterTable& table_;
  const ResnetTwinBatch& batch_;
  std::vector<Values> parameters_, state_;
};

}  // namespace mylos::tests
