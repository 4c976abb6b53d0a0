#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"
#include "core/parameters.hpp"

#include <vector>

/// Parameters on the device, flat by unit.
namespace mylos {

/// Elements [begin, end) of a unit that this rank updates: what optimizers and clipping see. Sizes are equal.
struct ParameterSlice {
  std::size_t unit = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  Vector<float> master;    ///< the values, in float
  Vector<float> gradient;  ///< complete when a parallel mode says so
};

/// One flat buffer of values (in the compute type) and, for training, one of float gradients and one of float state per
/// unit; a row is a View into it.
class ParameterStore {
 public:
  enum class Purpose { inference, training };
  /// Allocates for `table`, which must outlive the store. Values are not filled.
  ParameterStore(const ParameterTable& table, Precision precision, Purpose purpose);

  const ParameterTable& table() const { return *table_; }
  Precision precision() const { return precision_; }
  Purpose purpose() const { return purpose_; }
  /// Device memory held, in bytes.
  std::size_t bytes() const;

  /// All values of a unit. T must be the store's precision.
  template <class T>
  Vector<T> unit_values(std::size_t unit) const;
  Vector<float> unit_gradients(std::size_t unit) const { return gradients_[unit]; }
  Vector<float> unit_state(std::size_t unit) const { return state_[unit]; }

  /// Values of a row: (size), or as a matrix of its first dimension times the others.
  template <class T>
  ConstVector<T> values(std::size_t row) const;
  template <class T>
  ConstMatrix<T> matrix(std::size_t row) const;
  /// `count` neighbouring rows of equal columns, as one matrix: query, key and value together, grouped heads or not.
  /// Errors: std::invalid_argument if they are not neighbours.
  template <class T>
  ConstMatrix<T> stacked_matrix(std::size_t first_row, std::size_t count) const;
  template <class T>
  ConstVector<T> stacked_values(std::size_t first_row, std::size_t count) const;

  /// A step's gradients begin: they become zero, but for rows that the step before began with `begins_gradient`, which
  /// are written whole. Neither a pass over them nor the reading of zeros is paid for.
  void begin_gradients(const ExecutionSpace& space) const;
  /// True if the step has not touched the gradients of these rows: the caller writes them whole. False: it adds.
  bool begins_gradient(std::size_t first_row, std::size_t count) const;
  /// Makes zero what `begin_gradients` left and nobody wrote. After it unit_gradients are the step's.
  void finish_gradients(const ExecutionSpace& space) const;

  /// Gradients of a row, to be added to.
  Vector<float> gradient(std::size_t row) const;
  Matrix<float> gradient_matrix(std::size_t row) const;
  Matrix<float> stacked_gradient_matrix(std::size_t first_row, std::size_t count) const;
  Vector<float> stacked_gradient(std::size_t first_row, std::size_t count) const;
  Vector<float> state(std::size_t state_row) const;

 private:
  std::size_t stacked_size(std::size_t first_row, std::size_t count) const;
  Vector<float> gradient_memory(std::size_t row) const;

  /// How a row's gradient begins. Rows that were added to where the step before wrote them are cleared for good.
  enum class Begin : unsigned char { cleared, written, always_cleared };
  struct RowGradient {
    Begin begin = Begin::cleared;
    bool untouched = false;  ///< since the step began

    bool is_old() const { return untouched && begin == Begin::written; }
  };

  const ParameterTable* table_;
  Precision precision_;
  Purpose purpose_;
  std::vector<Vector<std::byte>> values_;
  std::vector<Vector<float>> gradients_, state_;
  mutable std::vector<RowGradient> row_gradients_;  ///< bookkeeping of the step, not of values
};

}  // namespace mylos
