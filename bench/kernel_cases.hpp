#pragma once

#include "core/device.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

/// Kernels that move bytes and compute little, each on arrays of its own.
namespace mylos::bench {

class KernelCase {
 public:
  virtual ~KernelCase() = default;
  KernelCase() = default;
  KernelCase(const KernelCase&) = delete;
  KernelCase& operator=(const KernelCase&) = delete;

  /// That no kernel can do without: each element of an array once, twice where it is read and written.
  virtual double bytes() const = 0;
  virtual void launch(const ExecutionSpace& space) const = 0;
  /// Whether the first launch gave what a naive formula on the host gives, in some of its rows and columns. Errors:
  /// std::runtime_error with both values.
  virtual void check() const = 0;
};

struct KernelKind {
  std::string name;
  /// One of about so many bytes, with rows of `columns` elements where its rows are a model's.
  std::unique_ptr<KernelCase> (*make)(std::size_t bytes, std::size_t columns);
};

template <class Case>
std::unique_ptr<KernelCase> make_case(std::size_t bytes, std::size_t columns) {
  return std::make_unique<Case>(bytes, columns);
}

/// Those of a step, for activations of type T.
template <class T>
std::vector<KernelKind> layer_norm_kinds();
template <class T>
std::vector<KernelKind> activation_kinds();
template <class T>
std::vector<KernelKind> embedding_kinds();
template <class T>
std::vector<KernelKind> loss_kinds();
template <class T>
std::vector<KernelKind> update_kinds();

}  // namespace mylos::bench
