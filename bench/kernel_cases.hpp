#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

/// Memory-bound kernels with little computation, each on its own arrays.
namespace mylos::bench {

class KernelCase {
 public:
  virtual ~KernelCase() = default;
  KernelCase() = default;
  KernelCase(const KernelCase&) = delete;
  KernelCase& operator=(const KernelCase&) = delete;

  /// Returns the minimum traffic: each element of an array once, twice if it is both read and written, and again in
  /// each pass that needs a sum of the one before.
  virtual double bytes() const = 0;
  virtual void launch(const ExecutionSpace& space) const = 0;
  /// Compares some rows and columns of the first launch's result with a naive formula on the host. Errors:
  /// std::runtime_error with both values.
  virtual void check() const = 0;
};

struct KernelKind {
  std::string name;
  /// Makes a case of about `bytes` bytes. `columns` is the row length, if the kernel's rows are rows of activations.
  std::unique_ptr<KernelCase> (*make)(std::size_t bytes, std::size_t columns);
};

template <class Case>
std::unique_ptr<KernelCase> make_case(std::size_t bytes, std::size_t columns) {
  return std::make_unique<Case>(bytes, columns);
}

/// The kernels of a step, for activations of type T.
template <class T>
std::vector<KernelKind> layer_norm_kinds();
template <class T>
std::vector<KernelKind> batch_norm_kinds();
template <class T>
std::vector<KernelKind> activation_kinds();
template <class T>
std::vector<KernelKind> embedding_kinds();
template <class T>
std::vector<KernelKind> loss_kinds();
template <class T>
std::vector<KernelKind> update_kinds();

}  // namespace mylos::bench
