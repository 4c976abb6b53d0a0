#pragma once

#include "core/device.hpp"
#include "core/element_type.hpp"

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
  /// Makes a case of about `bytes` bytes with activations of this precision. `columns` is the row length, if the
  /// kernel's rows are rows of activations.
  std::unique_ptr<KernelCase> (*make)(Precision precision, std::size_t bytes, std::size_t columns);
};

template <template <class T> class Case>
std::unique_ptr<KernelCase> make_case(Precision precision, std::size_t bytes, std::size_t columns) {
  return with_type(
      precision, [&]<class T>(T) -> std::unique_ptr<KernelCase> { return std::make_unique<Case<T>>(bytes, columns); });
}

/// The kernels of a step.
std::vector<KernelKind> layer_norm_kinds();
std::vector<KernelKind> batch_norm_kinds();
std::vector<KernelKind> activation_kinds();
std::vector<KernelKind> embedding_kinds();
std::vector<KernelKind> loss_kinds();
std::vector<KernelKind> update_kinds();

}  // namespace mylos::bench
