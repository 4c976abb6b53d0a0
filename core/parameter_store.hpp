#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"
#include "core/parameters.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

/// Parameters on the device, in one flat buffer per unit.
namespace mylos {

/// The values of a slice in 16 bits, which models compute with.
struct RoundedCopy {
  Vector<std::byte> values;
  Precision precision = Precision::bfloat16;
  /// True from an update of the master weights that also wrote `values` until the next sync_parameters.
  bool is_current = false;
};

/// Elements [begin, end) of a unit that this rank updates, as optimizers and gradient clipping see them. Slices have
/// equal sizes on all ranks; if several ranks shard a unit, `end` may exceed the unit's size.
struct ParameterSlice {
  std::size_t unit = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  Vector<float> master;    ///< master weights, in float; empty if the unit has none (ParameterUnit::has_master)
  Vector<float> gradient;  ///< complete when the sharding strategy says so
  /// Written by updates, so that no other pass has to read the master weights. Null if there is no copy to write,
  /// because values are float or are rounded later. Without master weights, the only values.
  std::shared_ptr<RoundedCopy> rounded = nullptr;
};

/// The memory that a store owns, and the number of slices per unit.
struct StoreLayout {
  std::size_t shards = 1;
  bool owns_values = true;     ///< false: the sharding strategy provides memory to units in use
  bool owns_gradients = true;  ///< false: provided at the first access in a pass, and taken back
};

/// Returns the elements that the frozen vectors of a unit have, in the unit where they have most. Their gradients are
/// written, but nobody reads them.
std::size_t unread_gradients(const ParameterTable& table);

/// Holds, per unit, one flat buffer of values (in the compute type) and, for training, one of float gradients and one
/// of float state. A tensor is a View into a buffer.
class ParameterStore {
 public:
  enum class Purpose { inference, training };
  /// Allocates memory for `table`, which must outlive the store. Values are left uninitialized.
  ParameterStore(const ParameterTable& table, Precision precision, Purpose purpose, StoreLayout layout = {});

  const ParameterTable& table() const { return *table_; }
  Precision precision() const { return precision_; }
  Purpose purpose() const { return purpose_; }
  const StoreLayout& layout() const { return layout_; }
  /// Elements in a unit's buffer: all its slices, padding included.
  std::size_t capacity(std::size_t unit) const;
  /// The capacity of the largest unit of the network with its rest.
  std::size_t largest_capacity() const;
  /// Elements in a unit's gradient buffer: its capacity, or none if it is frozen.
  std::size_t gradient_capacity(std::size_t unit) const;
  std::size_t largest_gradient_capacity() const;
  /// Device memory held, in bytes.
  std::size_t bytes() const;

  /// Provides memory for a unit's values (capacity elements in the store's precision); an empty `memory` takes it away.
  /// Only for a store that does not own its values.
  void give_values(std::size_t unit, const Vector<std::byte>& memory);
  /// Sets the function that provides gradient memory (capacity floats) when a pass first accesses a unit's gradients.
  /// Only for a store that does not own its gradients.
  void set_gradient_source(std::function<Vector<float>(std::size_t unit)> source);
  /// Releases the memory that the source provided for a unit.
  void take_gradients(std::size_t unit);

  /// The buffer of a unit's values, padding included.
  Vector<std::byte> value_memory(std::size_t unit) const { return values_[unit]; }
  /// The buffer of a unit's gradients, padding included.
  Vector<float> gradient_memory(std::size_t unit) const { return gradients_[unit]; }

  /// All values of a unit. T must match the store's precision.
  template <class T>
  Vector<T> unit_values(std::size_t unit) const;
  Vector<float> unit_gradients(std::size_t unit) const;
  Vector<float> unit_state(std::size_t unit) const { return state_[unit]; }

  /// Values of a tensor: (size), or as a matrix of its first dimension times the remaining ones.
  template <class T>
  ConstVector<T> values(std::size_t tensor) const;
  template <class T>
  ConstMatrix<T> matrix(std::size_t tensor) const;
  /// Views `count` consecutive tensors with the same number of columns as one matrix, such as query, key and value
  /// weights, with grouped heads or without. Errors: std::invalid_argument if the tensors are not contiguous.
  template <class T>
  ConstMatrix<T> stacked_matrix(std::size_t first_tensor, std::size_t count) const;
  template <class T>
  ConstVector<T> stacked_values(std::size_t first_tensor, std::size_t count) const;

  /// Begins the gradients of a step. Zero-fills them, except for the tensors that the previous step began with
  /// `begins_gradient`: those are overwritten. This avoids a memset and a read of zeros.
  void begin_gradients(const ExecutionSpace& space) const;
  /// Returns true if this step has not accessed the gradients of these tensors: the caller must then overwrite all of
  /// them. If false, the caller adds to them.
  bool begins_gradient(std::size_t first_tensor, std::size_t count) const;
  /// Zero-fills the gradients that no kernel wrote in this step, and those of frozen tensors. Afterwards,
  /// unit_gradients holds only this step's gradients.
  void finish_gradients(const ExecutionSpace& space, std::size_t unit) const;

  /// Returns true if one of these tensors is trained. If not, weight gradients need not be computed.
  bool trains(std::size_t first_tensor, std::size_t count = 1) const;
  /// Gradients of a tensor, for accumulation. Some kernels compute the gradient of a vector (a bias, a norm) together
  /// with that of their input. For a frozen vector this returns memory that nobody reads.
  Vector<float> gradient(std::size_t tensor) const;
  Matrix<float> gradient_matrix(std::size_t tensor) const;
  Matrix<float> stacked_gradient_matrix(std::size_t first_tensor, std::size_t count) const;
  Vector<float> stacked_gradient(std::size_t first_tensor, std::size_t count) const;
  Vector<float> state(std::size_t state_tensor) const;

 private:
  /// The way a tensor's gradient begins a step: with zeros, or overwritten by the first kernel that writes it.
  /// `always_cleared` is permanent. It is set if a step adds to a tensor that the previous step has overwritten.
  enum class Begin : unsigned char { cleared, written, always_cleared };
  struct TensorGradient {
    Begin begin = Begin::cleared;
    bool untouched = false;  ///< not accessed since the step began

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
  std::vector<std::vector<std::size_t>> unit_tensors_;  ///< of each unit, in the order of their offsets
  std::function<Vector<float>(std::size_t)> gradient_source_;
  mutable std::vector<Vector<float>> gradients_;
  mutable std::vector<TensorGradient> tensor_gradients_;  ///< per-step bookkeeping, hence mutable
  std::vector<std::size_t> unread_offsets_;               ///< of each tensor in unread_
  Vector<float> unread_;                                  ///< gradients of the frozen vectors of a unit
  mutable ExecutionSpace space_;                          ///< execution space of the step
};

}  // namespace mylos
