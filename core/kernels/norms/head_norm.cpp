#include "core/kernels/norms/head_norm.hpp"

#include "core/base/error.hpp"
#include "core/kernels/norms/rms_norm_held.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

template <class T>
struct NormalizeHead {
  HeadNorms<T> norms;
  Matrix<T> x, saved;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t item) const {
    const std::size_t size = norms.size(), row = item / norms.all(), head = item % norms.all();
    T* const y = x.data() + row * x.extent(1) + head * size;
    T* const z = saved.data() + item * size;
    const T* const weight = head < norms.heads ? norms.query.data() : norms.key.data();
    const float squares = team_sum(team, size, [=](std::size_t i) { return float(y[i]) * float(y[i]); });
    const float inverse = 1.0f / Kokkos::sqrt(squares / static_cast<float>(size) + norms.epsilon);
    team_for(team, size, [=](std::size_t i) {
      z[i] = y[i];
      y[i] = rms_norm::scaled(z[i], inverse, weight[i]);
    });
  }
};

/// Processes one block of rows: dx = inverse (g - x^ mean(g x^)) with g = dx weight and x^ = z inverse, as in
/// rms_norm.cpp; partial sums of dx x^ over the query heads and over the key heads.
template <class T>
struct HeadNormsBackwardBlock {
  HeadNorms<T> norms;
  ConstMatrix<T> saved;
  Matrix<T> dx;
  Matrix<float> of_query, of_key;  ///< partial sums (blocks, D)

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t size = norms.size(), end = column_sum_end(block, dx.extent(0));
    float* const query = of_query.data() + block * size;
    float* const key = of_key.data() + block * size;
    team_for(team, size, [=](std::size_t i) { query[i] = key[i] = 0.0f; });
    team_barrier(team);
    for (std::size_t row = block * column_sum_rows; row < end; ++row) {
      for (std::size_t head = 0; head < norms.all(); ++head) {
        const bool is_query = head < norms.heads;
        add_head(team, saved.data() + (row * norms.all() + head) * size,
                 is_query ? norms.query.data() : norms.key.data(), dx.data() + row * dx.extent(1) + head * size,
                 is_query ? query : key);
      }
    }
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_head(const Team& team, const T* z, const T* weight, T* gradient,
                                            float* sum) const {
    const std::size_t size = norms.size();
    float squares, products;
    team_sums(
        team, size,
        [=](std::size_t i, float& square, float& product) {
          square = float(z[i]) * float(z[i]);
          product = float(gradient[i]) * float(weight[i]) * float(z[i]);
        },
        squares, products);
    const float inverse = 1.0f / Kokkos::sqrt(squares / static_cast<float>(size) + norms.epsilon);
    const float mean = products * inverse / static_cast<float>(size);
    team_for(team, size, [=](std::size_t i) {
      const float normal = float(z[i]) * inverse, d = float(gradient[i]);
      gradient[i] = T(inverse * (d * float(weight[i]) - normal * mean));
      sum[i] += d * normal;
    });
  }
};

template <class T>
void check_head_norms(const HeadNorms<T>& norms, const ConstMatrix<T>& x, const ConstMatrix<T>& saved) {
  require(norms.key.size() == norms.size() && saved.extent(0) == x.extent(0) &&
              saved.extent(1) == norms.all() * norms.size() && saved.extent(1) <= x.extent(1),
          fmt::format("norms of {} + {} heads: weights of {} and {} elements, {} x {} saved of {} x {}", norms.heads,
                      norms.key_value_heads, norms.size(), norms.key.size(), saved.extent(0), saved.extent(1),
                      x.extent(0), x.extent(1)));
}

}  // namespace

template <class T>
void head_norms(const ExecutionSpace& space, const HeadNorms<T>& norms, const Matrix<T>& x, const Matrix<T>& saved) {
  check_head_norms<T>(norms, x, saved);
  for_each_row(with_work("mylos::head_norms::forward", work_of(saved.size(), 4.0, 3.0 * sizeof(T))), space,
               x.extent(0) * norms.all(), NormalizeHead<T>{norms, x, saved},
               {.threads = team_size_for(space, norms.size())});
}

template <class T>
void head_norms_backward(const ExecutionSpace& space, const HeadNorms<T>& norms, const ConstMatrix<T>& saved,
                         const Matrix<T>& dx, const Vector<float>& dquery, const Vector<float>& dkey,
                         const Vector<float>& workspace) {
  check_head_norms<T>(norms, dx, saved);
  const Matrix<float> query = partial_sums(workspace, 0, dx.extent(0), norms.size()),
                      key = partial_sums(workspace, 1, dx.extent(0), norms.size());
  for_each_row(with_work("mylos::head_norms::backward",
                         work_of(saved.size(), 13.0, 3.0 * sizeof(T)) + work_of(2 * query.size(), 0.0, sizeof(float))),
               space, query.extent(0), HeadNormsBackwardBlock<T>{norms, saved, dx, query, key},
               {.threads = team_size_for(space, norms.size())});
  add_partial_sums(space, {{query, dquery}, {key, dkey}});
}

#define MYLOS_INSTANTIATE(T)                                                                                   \
  template void head_norms<T>(const ExecutionSpace&, const HeadNorms<T>&, const Matrix<T>&, const Matrix<T>&); \
  template void head_norms_backward<T>(const ExecutionSpace&, const HeadNorms<T>&, const ConstMatrix<T>&,      \
                                       const Matrix<T>&, const Vector<float>&, const Vector<float>&,           \
                                       const Vector<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
