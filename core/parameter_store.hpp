#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"
#include "core/parameters.hpp"

#include <functional>
#include <utility>
#include <vector>

/// Parameters on the device, flat by unit.
namespace mylos {

/// Elements [begin, end) of a unit that this rank updates: what optimizers and clipping see. Sizes are equal on all
/// ranks; where several ranks share a unit, `end` may lie beyond it.
struct ParameterSlice {
  std::size_t unit = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  Vector<float> master;    ///< the values, in float
  Vector<float> gradient;  ///< complete when a parallel mode says so
};

/// Whose memory a store works in, and into how many slices its units are cut.
struct StoreLayout {
  std::size_t shards = 1;
  bool owns_values = true;     ///< false: a parallel mode gives memory to the units that are in use
  bool owns_gradients = true;  ///< the same, from the first touch in a pass until it takes them back
};

/// One flat buffer of values (in the compute type) and, for training, one of float gradients and one of float state per
/// unit; a tensor is a View into it.
class ParameterStore {
 public:
  enum class Purpose { inference, training };
  /// Allocates for `table`, which must outlive the store. Values are not filled.
  ParameterStore(const ParameterTable& table, Precision precision, Purpose purpose, StoreLayout layout = {});

  const ParameterTable& table() const { return *table_; }
  Precision precision() const { return precision_; }
  Purpose purpose() const { return purpose_; }
  const StoreLayout& layout() const { return layout_; }
  /// Elements of a unit's memory: all its slices, padding included.
  std::size_t capacity(std::size_t unit) const;
  /// That of the largest unit.
  std::size_t largest_capacity() const;
  /// Device memory held, in bytes.
  std::size_t bytes() const;

  /// Where the store owns no values: `memory` (capacity elements in the store's precision) holds those of a unit from
  /// now on; empty takes them away.
  void give_values(std::size_t unit, const Vector<std::byte>& memory);
  /// Where the store owns no gradients: asked for memory (capacity floats) when a pass first touches a unit's.
  void set_gradient_source(std::function<Vector<float>(std::size_t unit)> source);
  /// Takes back what the source gave.
  void take_gradients(std::size_t unit);

  /// The memory of a unit's values, padding included.
  Vector<std::byte> value_memory(std::size_t unit) const { return values_[unit]; }
  /// The memory of a unit's gradients, padding included.
  Vector<float> gradient_memory(std::size_t unit) const { return gradients_[unit]; }

  /// All values of a unit. T must be the store's precision.
  template <class T>
  Vector<T> unit_values(std::size_t unit) const;
  Vector<float> unit_gradients(std::size_t unit) const;
  Vector<float> unit_state(std::size_t unit) const { return state_[unit]; }

  /// Values of a tensor: (size), or as a matrix of its first dimension times the others.
  template <class T>
  ConstVector<T> values(std::size_t tensor) const;
  template <class T>
  ConstMatrix<T> matrix(std::size_t tensor) const;
  /// `count` neighbouring tensors of equal columns, as one matrix: query, key and value together, grouped heads or not.
  /// Errors: std::invalid_argument if they are not neighbours.
  template <class T>
  ConstMatrix<T> stacked_matrix(std::size_t first_tensor, std::size_t count) const;
  template <class T>
  ConstVector<T> stacked_values(std::size_t first_tensor, std::size_t count) const;

  /// A step's gradients begin: they become zero, but for tensors that the step before began with `begins_gradient`,
  /// which are written whole. Neither a pass over them nor the reading of zeros is paid for.
  void begin_gradients(const ExecutionSpace& space) const;
  /// True if the step has not touched the gradients of these tensors: the caller writes them whole. False: it adds.
  bool begins_gradient(std::size_t first_tensor, std::size_t count) const;
  /// Makes zero what of a unit `begin_gradients` left and nobody wrote. After it unit_gradients are what was added
  /// since.
  void finish_gradients(const ExecutionSpace& space, std::size_t unit) const;

  /// Gradients of a tensor, to be added to.
  Vector<float> gradient(std::size_t tensor) const;
  Matrix<float> gradient_matrix(std::size_t tensor) const;
  Matrix<float> stacked_gradient_matrix(std::size_t first_tensor, std::size_t count) const;
  Vector<float> stacked_gradient(std::size_t first_tensor, std::size_t count) const;
  Vector<float> state(std::size_t state_tensor) const;

 private:
  /// How a tensor's gradient begins. Rows that were added to where the step before wrote them are cleared for good.
  enum class Begin : unsigned char { cleared, written, always_cleared };
  struct TensorGradient {
    Begin begin = Begin::cleared;
    bool untouched = false;  ///< since the step began

    bool is_old() const { return untouched && begin == Begin::written; }
  };

  std::size_t stacked_size(std::size_t first_tensor, std::size_t count) const;
  Vector<float> tensor_gradient(std::size_t tensor) const;
  void begin_unit(const ExecutionSpace& space, std::size_t unit) const;
  void touch_gradients(std::size_t unit) const;

  const ParameterTable* table_;
  Precision precision_;
  Purpose purpose_;
  StoreLayout layout_;
  std::vector<Vector<std::byte>> values_;
  std::vector<Vector<float>> state_;
  std::vector<std::pair<std::size_t, std::size_t>> unit_tensors_;  ///< [first, last) tensor of each unit
  std::function<Vector<float>(std::size_t)> gradient_source_;
  mutable std::vector<Vector<float>> gradients_;
  mutable std::vector<TensorGradient> tensor_gradients_;  ///< bookkeeping of the step, not of values
  mutable ExecutionSpace space_;                          ///< of the step
};

}  // namespace mylos
