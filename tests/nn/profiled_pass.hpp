#pragma once

#include "tests/support/arrays.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/product_recorder.hpp"
#include "tests/support/work_recorder.hpp"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace mylos::tests {

/// The recorded operations of one training pass of a model.
struct ProfiledPass {
  BatchShape shape;
  std::vector<GemmLabel> products;
  double product_flops = 0.0;
  std::map<std::string, Work> kernels;
};

/// Runs one training pass in `precision` on all three samples of `data`, with GEMMs by `provider`.
template <class Data>
ProfiledPass profile_pass(const nn::Model& model, const Data& data, Precision precision, nn::Recompute recompute,
                          const std::string& provider) {
  Arena planned;
  model.plan(planned, data.shape(), ParameterStore::Purpose::training, recompute);
  Engine engine(model.table(), precision, planned.peak(), provider);
  Batch batch;
  data.fill(0, 3, batch);
  nn::Pass pass = engine.pass();
  pass.recompute = recompute;
  const ProductRecorder products;
  const WorkRecorder kernels;
  model.train(pass, batch, 1.0f, Vector<float>("test::losses", 3));
  Kokkos::fence("test::profile_pass");
  ProfiledPass profiled{data.shape(), products.products(), 0.0, kernels.work()};
  for (const GemmLabel& product : profiled.products) profiled.product_flops += product_work(product).flops;
  return profiled;
}

/// Number of GEMMs with the same parameters.
using ProductCounts = std::map<
    std::tuple<Transpose, Transpose, std::size_t, std::size_t, std::size_t, Precision, Precision, EpilogueKind>,
    std::size_t>;

/// Adds `count` to the number of a GEMM, given as a GemmLabel or a GemmProduct.
template <class Product>
void count_product(ProductCounts& counts, const Product& one, std::size_t count) {
  counts[{one.transpose_a, one.transpose_b, one.m, one.n, one.k, one.input, one.output, one.epilogue}] += count;
}

/// Expects that a model lists the GEMMs of the recorded training pass. Returns how often it lists each name.
inline std::map<std::string, std::size_t> expect_listed_products(const nn::Model& model, const ProfiledPass& profiled) {
  ProductCounts computed, listed;
  for (const GemmLabel& one : profiled.products) count_product(computed, one, 1);
  std::map<std::string, std::size_t> names;
  for (const GemmProduct& one : model.products(profiled.shape, ParameterStore::Purpose::training)) {
    count_product(listed, one, one.count);
    names[one.name] = one.count;
  }
  EXPECT_EQ(listed, computed);
  return names;
}

}  // namespace mylos::tests
