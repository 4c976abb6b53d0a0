#pragma once

#include "core/kernels/products/gemm_label.hpp"

#include <vector>

namespace mylos::tests {

/// Records the GEMMs computed during its lifetime, from the profiling regions. Only one at a time.
/// Callbacks that were set before are those again afterwards.
class ProductRecorder {
 public:
  ProductRecorder() {
    recorded().clear();
    Kokkos::Tools::Experimental::set_push_region_callback([](const char* name) {
      if (const auto product = parse_gemm_label(name)) recorded().push_back(*product);
    });
  }
  ~ProductRecorder() { Kokkos::Tools::Experimental::set_callbacks(before_); }
  ProductRecorder(const ProductRecorder&) = delete;
  ProductRecorder& operator=(const ProductRecorder&) = delete;

  const std::vector<GemmLabel>& products() const { return recorded(); }

 private:
  static std::vector<GemmLabel>& recorded() {
    static std::vector<GemmLabel> all;
    return all;
  }

  const Kokkos::Tools::Experimental::EventSet before_ = Kokkos::Tools::Experimental::get_callbacks();
};

}  // namespace mylos::tests
