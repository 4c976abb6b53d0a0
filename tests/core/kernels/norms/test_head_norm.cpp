#include "core/kernels/norms/head_norm.hpp"

#include "core/kernels/norms/layer_norm.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr float head_epsilon = 1e-3f;

/// Rows of query and key heads, and of values that are not normalised; and the loss sum(dy * y), naively in double.
struct HeadTwin {
  std::size_t rows, heads, keys, size;
  Values x, query, key, dy;

  template <class T>
  static HeadTwin random(std::size_t rows, std::size_t heads, std::size_t keys, std::size_t size) {
    const std::size_t all = rows * (heads + 2 * keys) * size;
    return {rows,
            heads,
            keys,
            size,
            random_values<T>(all, 1, 2.0),
            random_values<T>(size, 2),
            random_values<T>(size, 3),
            random_values<T>(all, 4)};
  }
  std::size_t columns() const { return (heads + 2 * keys) * size; }
  bool is_normed(std::size_t i) const { return i % columns() / size < heads + keys; }
  const Values& weight(std::size_t i) const { return i % columns() / size < heads ? query : key; }
  /// The factor of the head of element i.
  double inverse(std::size_t i) const {
    double squares = 0.0;
    for (std::size_t d = 0; d < size; ++d) squares += x[i / size * size + d] * x[i / size * size + d];
    return 1.0 / std::sqrt(squares / static_cast<double>(size) + static_cast<double>(head_epsilon));
  }
  double y(std::size_t i) const { return is_normed(i) ? x[i] * inverse(i) * weight(i)[i % size] : x[i]; }
  /// The loss of the head of element i.
  double loss(std::size_t i) const {
    double sum = 0.0;
    for (std::size_t d = i / size * size; d < i / size * size + size; ++d) sum += dy[d] * y(d);
    return sum;
  }
};

template <class T>
struct HeadDevice {
  HeadNorms<T> norms;
  Matrix<T> x, saved, dx;
  Vector<float> dquery, dkey, workspace;

  explicit HeadDevice(const HeadTwin& twin)
      : norms{twin.heads, twin.keys, device_vector<T>(twin.query), device_vector<T>(twin.key), head_epsilon},
        x(device_matrix<T>(twin.x, twin.rows, twin.columns())),
        saved("test::saved", twin.rows, (twin.heads + twin.keys) * twin.size),
        dx(device_matrix<T>(twin.dy, twin.rows, twin.columns())),
        dquery("test::dquery", twin.size),
        dkey("test::dkey", twin.size),
        workspace("test::workspace", column_sum_workspace(twin.rows, twin.size)) {}
  void run(const ExecutionSpace& space = {}) {
    head_norms<T>(space, norms, x, saved);
    head_norms_backward<T>(space, norms, saved, dx, dquery, dkey, workspace);
    space.fence("test::head_norms");
  }
};

template <class T>
std::vector<HeadTwin> head_twins() {
  return {HeadTwin::random<T>(1, 1, 1, 2), HeadTwin::random<T>(70, 4, 2, 20), HeadTwin::random<T>(3, 6, 1, 128),
          HeadTwin::random<T>(33, 2, 2, 7)};
}

MYLOS_TEST_OF_ELEMENTS(HeadNorms, BothPassesMatchTheTwin) {
  for (HeadTwin twin : head_twins<T>()) {
    const std::string name =
        fmt::format("{} rows of {} and {} heads of {}", twin.rows, twin.heads, twin.keys, twin.size);
    HeadDevice<T> device(twin);
    device.run();
    Values y(twin.x.size()), dx = twin.dy, dquery(twin.size, 0.0), dkey(twin.size, 0.0);
    for (std::size_t i = 0; i < twin.x.size(); ++i) {
      y[i] = twin.y(i);
      if (!twin.is_normed(i)) continue;
      dx[i] = numeric_derivative(twin.x[i], [&] { return twin.loss(i); });
      Values& sum = i % twin.columns() / twin.size < twin.heads ? dquery : dkey;
      sum[i % twin.size] += twin.dy[i] * twin.x[i] * twin.inverse(i);
    }
    expect_near(host_values(device.x), y, 6.0 * rounding<T> + 2e-6, name + " y");
    expect_near(host_values(device.dx), dx, 12.0 * rounding<T> + 5e-6, name + " dx");
    expect_near(host_values(device.dquery), dquery, 5e-6, name + " dquery");
    expect_near(host_values(device.dkey), dkey, 5e-6, name + " dkey");
  }
}

MYLOS_TEST_OF_ELEMENTS(HeadNorms, ThreadsChangeNoBit) {
  const HeadTwin twin = HeadTwin::random<T>(70, 4, 2, 20);
  HeadDevice<T> many(twin), one(twin);
  many.run();
  one.run(one_thread());
  EXPECT_TRUE(same_bits(many.x, one.x));
  EXPECT_TRUE(same_bits(many.dx, one.dx));
  EXPECT_TRUE(same_bits(many.dquery, one.dquery));
  EXPECT_TRUE(same_bits(many.dkey, one.dkey));
}

MYLOS_TEST_OF_ELEMENTS(HeadNorms, RefusesSizesThatDoNotFit) {
  const HeadDevice<T> device(HeadTwin::random<T>(3, 2, 1, 4));
  EXPECT_THAT(error_of([&] { head_norms<T>({}, device.norms, device.x, Matrix<T>("test::saved", 3, 8)); }),
              HasSubstr("norms of 2 + 1 heads: weights of 4 and 4 elements, 3 x 8 saved of 3 x 16"));
}

}  // namespace
}  // namespace mylos
