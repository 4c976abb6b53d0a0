#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <string>

/// The one place that names execution spaces, memory spaces and layouts.
namespace mylos {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using MemorySpace = ExecutionSpace::memory_space;
using HostSpace = Kokkos::HostSpace;

/// Device arrays are row-major and may be parts of larger ones. Owning arrays are Vector and Matrix as well.
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, MemorySpace>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, MemorySpace>;
template <class T>
using HostVector = Kokkos::View<T*, Kokkos::LayoutRight, HostSpace>;

template <class T>
using ConstVector = Vector<const T>;
template <class T>
using ConstMatrix = Matrix<const T>;

/// The range [begin, end) of a vector, as a vector.
template <class T>
Vector<T> slice(const Vector<T>& whole, std::size_t begin, std::size_t end) {
  return Kokkos::subview(whole, Kokkos::make_pair(begin, end));
}

/// A vector's first rows * columns elements seen as a matrix. No copy; `data` must outlive it.
template <class T>
Matrix<T> as_matrix(const Vector<T>& data, std::size_t rows, std::size_t columns) {
  return Matrix<T>(data.data(), rows, columns);
}

/// An owning vector that is not filled; `label` names it in memory reports.
template <class T>
Vector<T> uninitialized(const std::string& label, std::size_t size) {
  return Vector<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), size);
}

}  // namespace mylos
