#include "core/kernels/elementwise.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/numeric.hpp"
#include "core/random.hpp"
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

template <class T>
void fill_uniform(const ExecutionSpace& space, const Vector<T>& values, std::uint64_t stream, float size) {
  T* const data = values.data();
  Kokkos::parallel_for(
      "mylos::elementwise::fill_uniform", Kokkos::RangePolicy<ExecutionSpace>(space, 0, values.size()),
      KOKKOS_LAMBDA(std::size_t i) { data[i] = T(size * (2.0f * uniform(philox(stream, i, 0).word[0]) - 1.0f)); });
}

template void fill_uniform<float>(const ExecutionSpace&, const Vector<float>&, std::uint64_t, float);
template void fill_uniform<bfloat16>(const ExecutionSpace&, const Vector<bfloat16>&, std::uint64_t, float);
template void fill_uniform<half>(const ExecutionSpace&, const Vector<half>&, std::uint64_t, float);

}  // namespace mylos
