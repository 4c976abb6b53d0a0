#include "core/kernels/elementwise.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {

void add(const ExecutionSpace& space, const ConstVector<float>& x, const Vector<float>& y) {
  require(x.size() == y.size(), fmt::format("add: {} elements to {}", x.size(), y.size()));
  const float* const in = x.data();
  float* const out = y.data();
  for_each_element(
      with_work("mylos::elementwise::add", work_of(y.size(), 1.0, 3.0 * sizeof(float))), space, y.size(),
      KOKKOS_LAMBDA(const float& term, float& sum) { sum += term; }, in, out);
}

}  // namespace mylos
