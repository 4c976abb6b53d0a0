#pragma once

#include "core/base/error.hpp"
#include "core/batch.hpp"
#include "core/device.hpp"
#include "core/kernels/dropout.hpp"
#include "core/kernels/team.hpp"
#include "core/numeric.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

/// Arrays with elements that the host can compute, and comparisons of kernel results with values computed from them.
namespace mylos::bench {

/// Returns element `i` of array number `array`: a multiple of 1/64 in [-1, 1), which every element type represents
/// exactly.
KOKKOS_INLINE_FUNCTION float value(std::uint32_t array, std::size_t i) {
  auto word = static_cast<std::uint32_t>(i) * 0x9E3779B9u + array * 0x85EBCA6Bu;
  word ^= word >> 15;
  word *= 0x2C1B3C6Du;
  return static_cast<float>(static_cast<std::int32_t>(word >> 25) - 64) * (1.0f / 64.0f);
}

inline std::size_t at_least_one(std::size_t count) { return count > 0 ? count : 1; }

/// Returns a vector of these values.
template <class T>
Vector<T> filled(std::uint32_t array, std::size_t size) {
  const Vector<T> values = uninitialized<T>("mylos::bench::values", size);
  for_each_element(
      "mylos::bench::fill", ExecutionSpace(), size, KOKKOS_LAMBDA(std::size_t i) { values(i) = T(value(array, i)); });
  return values;
}

/// A matrix that owns its memory.
template <class T>
struct OwnMatrix {
  Vector<T> memory;
  std::size_t rows = 0, columns = 0;

  operator Matrix<T>() const { return as_matrix(memory, rows, columns); }
  operator ConstMatrix<T>() const { return as_matrix(memory, rows, columns); }
};
template <class T>
OwnMatrix<T> filled_matrix(std::uint32_t array, std::size_t rows, std::size_t columns) {
  return {filled<T>(array, rows * columns), rows, columns};
}
template <class T>
OwnMatrix<T> empty_matrix(std::size_t rows, std::size_t columns) {
  return {uninitialized<T>("mylos::bench::result", rows * columns), rows, columns};
}

template <class T>
Vector<T> uploaded(const std::vector<T>& host) {
  const Vector<T> values = uninitialized<T>("mylos::bench::uploaded", host.size());
  Kokkos::deep_copy(values, Kokkos::View<const T*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>(
                                host.data(), host.size()));
  return values;
}

template <class T>
std::vector<float> row_of(const OwnMatrix<T>& matrix, std::size_t row) {
  const std::size_t begin = row * matrix.columns;
  const auto host =
      Kokkos::create_mirror_view_and_copy(HostSpace(), slice(matrix.memory, begin, begin + matrix.columns));
  return {host.data(), host.data() + host.size()};
}

inline double element(const Vector<float>& vector, std::size_t i) {
  return row_of(OwnMatrix<float>{vector, vector.size(), 1}, i)[0];
}

template <class T>
std::vector<float> column_of(const OwnMatrix<T>& matrix, std::size_t column) {
  const Vector<float> gathered = uninitialized<float>("mylos::bench::column", matrix.rows);
  const Vector<T> memory = matrix.memory;
  const std::size_t columns = matrix.columns;
  for_each_element(
      "mylos::bench::column", ExecutionSpace(), matrix.rows,
      KOKKOS_LAMBDA(std::size_t row) { gathered(row) = float(memory(row * columns + column)); });
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), gathered);
  return {host.data(), host.data() + host.size()};
}

/// Packed sequences of 128 rows, and one with the remaining rows.
class PackedRows {
 public:
  static constexpr std::size_t sequence_rows = 128;

  explicit PackedRows(std::size_t rows) {
    std::vector<std::size_t> lengths(rows / sequence_rows, sequence_rows);
    if (rows % sequence_rows > 0) lengths.push_back(rows % sequence_rows);
    std::vector<std::uint32_t> ids(lengths.size());
    std::iota(ids.begin(), ids.end(), 7u);
    batch_.reset(lengths, ids);
  }

  DropoutRows device() const { return dropout_rows(batch_); }
  Batch& batch() { return batch_; }
  const Batch& batch() const { return batch_; }
  /// Returns the factor that dropout applies to an element.
  static double factor(const DropoutKey& key, std::size_t row, std::size_t column) {
    const auto sample = static_cast<std::uint32_t>(7 + row / sequence_rows);
    const auto position = static_cast<std::uint32_t>(row % sequence_rows);
    const DropoutDraw draw = dropout_draw(key, sample, position, 0, static_cast<std::uint32_t>(column / dropout_group));
    return draw[static_cast<unsigned>(column % dropout_group)] < key.threshold() ? 0.0 : key.scale();
  }

 private:
  Batch batch_;
};

/// Returns four positions below `count`, including the first and the last.
inline std::array<std::size_t, 4> positions_in(std::size_t count) { return {0, count / 3, count / 2, count - 1}; }

/// Returns the tolerance for one element: its rounding and that of a few operations in float.
template <class T>
double tolerance() {
  switch (precision_of<T>) {
    case Precision::bfloat16:
      return 1.0 / 64;
    case Precision::float16:
      return 1.0 / 512;
    case Precision::float32:
      break;
  }
  return 1e-4;
}

inline void check_value(const std::string& what, std::size_t row, std::size_t column, double actual, double expected,
                        double tolerance) {
  ensure(std::abs(actual - expected) <= tolerance * (1.0 + std::abs(expected)),
         fmt::format("{}: element ({}, {}) is {}, and should be {}", what, row, column, actual, expected));
}

/// Tolerance for sums of these values: multiples of 1/64, which floats below 2^18 represent exactly.
inline constexpr double exact_sum_bound = 1.0 / 128;
/// Tolerance for sums over rows of values that were rounded to float first. A block of 32 rows adds about 3.
inline constexpr double float_sum_bound = 1.0 / 32;

/// Checks a sum over many rows. The bound does not grow with the number of rows, so that missing rows are detected in
/// sums of any length.
inline void check_sum(const std::string& what, std::size_t row, std::size_t column, double actual, double expected,
                      double bound) {
  ensure(std::abs(actual - expected) <= bound,
         fmt::format("{}: the sum ({}, {}) is {}, and should be {}", what, row, column, actual, expected));
}

/// Checks all columns of some rows against expected(row, column), computed in double.
template <class T, class Expected>
void check_rows(const std::string& what, const OwnMatrix<T>& result, const Expected& expected) {
  for (const std::size_t row : positions_in(result.rows)) {
    const std::vector<float> actual = row_of(result, row);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      check_value(what, row, i, actual[i], expected(row, i), tolerance<T>());
    }
  }
}

}  // namespace mylos::bench
