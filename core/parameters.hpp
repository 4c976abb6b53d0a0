#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The description of a model's parameters: tensors grouped into units. Host only, immutable once built.
namespace mylos {

/// Units are cut into slices at multiples of this many elements, and gradient norms are summed over blocks of this
/// many, so that neither depends on the number of ranks.
inline constexpr std::size_t slice_block = 1024;

/// Returns the number of elements per slice if a unit of `size` elements is cut into `shards` equal slices. With more
/// than one shard, the result is a multiple of slice_block, so the last slices may reach beyond the unit.
std::size_t shard_size(std::size_t size, std::size_t shards);

/// The initial values of a tensor that is not loaded from a file.
struct Initializer {
  enum class Kind { zeros, ones, normal, uniform } kind = Kind::zeros;
  float scale = 0.0f;  ///< standard deviation if normal; uniform values are in [-scale, scale)
};

/// Optimizer settings that a group of tensors has in common.
struct ParameterGroup {
  bool decay = true;
  float learning_rate_factor = 1.0f;
  bool trainable = true;  ///< false: frozen

  bool operator==(const ParameterGroup&) const = default;
};

/// How a state tensor changes once per step.
struct StateRule {
  enum class Kind {
    average,  ///< state = (1 - momentum) state + momentum * mean over the step's samples
    count,    ///< state += 1
  } kind = Kind::average;
  float momentum = 0.1f;
};

/// An adapter of a linear layer, y += scale (dropout(x) A^T) B^T.
struct AdapterRule {
  float scale = 1.0f;
  float dropout = 0.0f;  ///< probability in training, in [0, 1)
};

/// One named tensor. Its elements are row-major at [offset, offset + size) of its unit.
struct ParameterTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t unit = 0;
  std::size_t offset = 0;
  std::size_t size = 0;
  ParameterGroup group;
  Initializer initializer;
  StateRule rule = {};     ///< for state tensors only
  bool in_head = false;    ///< of the network's head, not of its body
  std::size_t stack = 0;   ///< matrices of the same stack are read as one, and so are its vectors; 0: of none
  bool is_linear = false;  ///< the weight of a linear layer, which may have an adapter
  std::optional<AdapterRule> adapter = {};  ///< for the matrices A and B of an adapter
};

/// Elements [begin, end) of a tensor.
struct TensorRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const TensorRange&) const = default;
};

/// Errors: std::invalid_argument if [first, first + count) exceeds the tensor.
void check_range(const ParameterTensor& tensor, std::size_t first, std::size_t count);

/// An FSDP unit: tensors that are gathered, reduced, updated, recomputed and saved together.
struct ParameterUnit {
  std::string name;
  std::size_t size = 0;               ///< elements of its own tensors
  std::vector<std::size_t> borrowed;  ///< units whose tensors it also reads (tied embeddings)
  bool trained = true;                ///< false: its tensors are frozen. It has no gradients and no exchange.
  /// The unit of its frozen tensors if others are trained.
  std::optional<std::size_t> rest = {};
  /// False: its values are those of the model that is adapted. They are held in the compute type only, and not saved.
  bool has_master = true;
};

/// Units whose values have changed.
enum class ChangedUnits {
  all,      ///< for example by loading
  trained,  ///< by an update
};

/// Elements [begin, end) of a unit that belong to one group.
struct ParameterSegment {
  std::size_t begin = 0;
  std::size_t end = 0;
  ParameterGroup group;
};

/// The tensors and units of one model, in the order of its forward pass. The units that a network goes over come first.
/// After them come the rests of units of which some tensors are frozen: what holds of a frozen unit thus holds of every
/// frozen tensor.
class ParameterTable {
 public:
  class Builder;

  std::span<const ParameterTensor> tensors() const { return tensors_; }
  std::span<const ParameterUnit> units() const { return units_; }
  /// Number of units that the network goes over: all without the rests.
  std::size_t network_units() const { return network_units_; }
  /// A unit of the network and its rest, if it has one.
  std::vector<std::size_t> parts(std::size_t unit) const;
  /// The units whose values a unit of the network reads, in the order in which they are gathered: its own parts are
  /// last.
  std::vector<std::size_t> read_by(std::size_t unit) const;
  /// Float values that are saved but not trained (running statistics of BatchNorm). Offsets are relative to their
  /// unit's state.
  std::span<const ParameterTensor> state_tensors() const { return state_tensors_; }
  std::size_t state_size(std::size_t unit) const { return state_sizes_[unit]; }
  /// Number of state elements of all units. A training pass observes this many values per sample, unit after unit.
  std::size_t observed_size() const;
  /// Offset of a unit's state among them.
  std::size_t observed_offset(std::size_t unit) const;

  const ParameterTensor& tensor(std::size_t index) const { return tensors_[index]; }
  /// Returns the index of the tensor called `name`. Errors: std::invalid_argument if there is none.
  std::size_t find(std::string_view name) const;
  /// Returns nullopt if there is none.
  std::optional<std::size_t> look_up(std::string_view name) const;
  std::size_t find_state(std::string_view name) const;

  /// Returns the unit's groups in the order of its elements.
  std::vector<ParameterSegment> segments(std::size_t unit) const;
  /// Number of elements of all tensors.
  std::size_t size() const;
  /// Number of elements of all frozen tensors, and of all trained units.
  std::size_t frozen_size() const;
  std::size_t trained_size() const;
  std::size_t trained_units() const;
  /// The first unit that is trained: backward passes end there.
  std::size_t first_trained_unit() const;

  /// Freezes the tensors for which `is_frozen` returns true. Tensors keep their order. Those that are frozen in a unit
  /// with others that are trained move to the unit's rest. A tensor whose stack has trained tensors stays with them: it
  /// keeps its gradient's memory, which stays zero.
  void freeze(const std::function<bool(const ParameterTensor&)>& is_frozen);

  /// Adds tensors of adapters to units of the network, in the order in which those of a stack are read, and freezes the
  /// others for which `is_frozen` returns true. Errors: a duplicate name.
  void adapt(std::vector<ParameterTensor> adapters, const std::function<bool(const ParameterTensor&)>& is_frozen);
  bool is_adapted() const { return adapted_; }

 private:
  void separate_frozen();
  std::size_t rest_of(std::size_t unit);

  std::vector<ParameterTensor> tensors_, state_tensors_;
  std::vector<ParameterUnit> units_;
  std::size_t network_units_ = 0;
  bool adapted_ = false;
  std::vector<std::size_t> state_sizes_;
  std::map<std::string, std::size_t, std::less<>> index_, state_index_;
};

/// Collects tensors unit by unit. Within a unit, tensors are sorted by group and otherwise keep their order, so that
/// consecutive tensors of a group are contiguous: query, key and value weights can be read as one matrix.
class ParameterTable::Builder {
 public:
  /// Begins the next unit; tensors added later belong to it.
  Builder& unit(std::string name);
  /// Adds a tensor. Errors: a duplicate name, an empty shape.
  Builder& tensor(std::string name, std::vector<std::size_t> shape, Initializer initializer, ParameterGroup group = {});
  /// Adds the weight of a linear layer.
  Builder& linear_weight(std::string name, std::vector<std::size_t> shape, Initializer initializer);
  Builder& state(std::string name, std::vector<std::size_t> shape, Initializer initializer, StateRule rule = {});
  /// Declares that the current unit also reads the tensors of `unit`, an earlier unit.
  Builder& borrow(std::string_view unit);
  /// Declares that tensors added later belong to the head, or no longer do.
  Builder& head(bool begins);
  /// Declares that tensors added later are a stack, or no longer are.
  Builder& stack(bool begins);

  ParameterTable build();

 private:
  std::vector<ParameterTensor> tensors_, state_tensors_;
  std::vector<ParameterUnit> units_;
  bool in_head_ = false;
  std::size_t stack_ = 0, stacks_ = 0;  ///< the current one, and their number
};

/// Writes the initial values of a tensor, starting at element `first`. Each value is a pure function of (tensor name,
/// initializer, seed, element), hence independent of the ranks, the other tensors and the sharding. Errors:
/// std::invalid_argument if the range exceeds the tensor.
void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::size_t first, std::span<float> values);
/// The same for the whole tensor: `values` has tensor.size elements.
void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::span<float> values);

}  // namespace mylos
