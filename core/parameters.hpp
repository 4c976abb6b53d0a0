#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a model's parameters are: tensors in units. Host only, immutable once built.
namespace mylos {

/// Units are cut into slices at multiples of it, and the norm of gradients is summed over blocks of it, so that neither
/// depends on the number of ranks.
inline constexpr std::size_t slice_block = 1024;

/// Elements of each of `shards` equal slices of a unit of `size` elements. Several are multiples of slice_block, so
/// that the last ones may reach beyond the unit.
std::size_t shard_size(std::size_t size, std::size_t shards);

/// How a tensor that no file provides is filled.
struct Initializer {
  enum class Kind { zeros, ones, normal, uniform } kind = Kind::zeros;
  float scale = 0.0f;  ///< standard deviation of normal; uniform values lie in [-scale, scale)
};

/// What optimizers treat alike.
struct ParameterGroup {
  bool decay = true;
  float learning_rate_factor = 1.0f;
  bool trainable = true;

  bool operator==(const ParameterGroup&) const = default;
};

/// How a state tensor changes once a step.
struct StateRule {
  enum class Kind {
    average,  ///< state = (1 - momentum) state + momentum * the mean of what the step's samples observed
    count,    ///< state += 1
  } kind = Kind::average;
  float momentum = 0.1f;
};

/// One named tensor. Its elements stand row-major at [offset, offset + size) of its unit.
struct ParameterTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t unit = 0;
  std::size_t offset = 0;
  std::size_t size = 0;
  ParameterGroup group;
  Initializer initializer;
  StateRule rule = {};  ///< of a state tensor
};

/// Elements [begin, end) of a tensor.
struct TensorRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const TensorRange&) const = default;
};

/// Errors: std::invalid_argument where `count` elements from `first` on do not lie in the tensor.
void check_range(const ParameterTensor& tensor, std::size_t first, std::size_t count);

/// What is gathered, reduced, updated, recomputed and saved together.
struct ParameterUnit {
  std::string name;
  std::size_t size = 0;               ///< elements of its own tensors
  std::vector<std::size_t> borrowed;  ///< units whose tensors it reads as well (tied embeddings)
};

/// Elements [begin, end) of a unit that belong to one group.
struct ParameterSegment {
  std::size_t begin = 0;
  std::size_t end = 0;
  ParameterGroup group;
};

/// The tensors and units of one model, in the order of its forward pass.
class ParameterTable {
 public:
  class Builder;

  std::span<const ParameterTensor> tensors() const { return tensors_; }
  std::span<const ParameterUnit> units() const { return units_; }
  /// Float values that are saved but not trained (BatchNorm's running statistics); offsets count within their unit's
  /// state.
  std::span<const ParameterTensor> state_tensors() const { return state_tensors_; }
  std::size_t state_size(std::size_t unit) const { return state_sizes_[unit]; }
  /// Elements of all units' state: what a training pass observes of each sample, unit after unit.
  std::size_t observed_size() const;
  /// Where a unit's state begins among them.
  std::size_t observed_offset(std::size_t unit) const;

  const ParameterTensor& tensor(std::size_t index) const { return tensors_[index]; }
  /// Index of the tensor called `name`. Errors: std::invalid_argument if there is none.
  std::size_t find(std::string_view name) const;
  std::size_t find_state(std::string_view name) const;

  /// The unit's groups in the order of its elements.
  std::vector<ParameterSegment> segments(std::size_t unit) const;
  /// Elements of all tensors together.
  std::size_t size() const;

 private:
  std::vector<ParameterTensor> tensors_, state_tensors_;
  std::vector<ParameterUnit> units_;
  std::vector<std::size_t> state_sizes_;
  std::map<std::string, std::size_t, std::less<>> index_, state_index_;
};

/// Collects tensors unit by unit. Within a unit tensors are laid out by group, in the order they came: neighbours of
/// the same group are contiguous, so that query, key and value weights can be read as one matrix.
class ParameterTable::Builder {
 public:
  /// Begins the next unit; tensors added from here on belong to it.
  Builder& unit(std::string name);
  /// Adds a tensor. Errors: a name that is there already, an empty shape.
  Builder& tensor(std::string name, std::vector<std::size_t> shape, Initializer initializer, ParameterGroup group = {});
  Builder& state(std::string name, std::vector<std::size_t> shape, Initializer initializer, StateRule rule = {});
  /// The current unit also reads the tensors of `unit`, which came before it.
  Builder& borrow(std::string_view unit);

  ParameterTable build();

 private:
  std::vector<ParameterTensor> tensors_, state_tensors_;
  std::vector<ParameterUnit> units_;
};

/// The initial values of a tensor from its element `first` on. Each is a pure function of (tensor name, initializer,
/// seed, element), so independent of ranks, of the other tensors and of how the tensor is cut. Errors:
/// std::invalid_argument where the range does not lie in the tensor.
void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::size_t first, std::span<float> values);
/// The whole tensor: `values` has tensor.size elements.
void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::span<float> values);

}  // namespace mylos
