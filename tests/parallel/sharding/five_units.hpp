#pragma once

#include "core/parameter_store.hpp"
#include "parallel/communicator/communicator.hpp"
#include "tests/support/arrays.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace mylos::parallel {

/// A store for ParameterGatherer. The last unit also reads the tensors of the first.
struct FiveUnits {
  explicit FiveUnits(std::size_t shards)
      : store(table, Precision::float32, ParameterStore::Purpose::inference, {.shards = shards, .owns_values = false}) {
  }

  /// Returns master weights that are 100 times the unit's index, plus the rank.
  std::vector<Vector<float>> master_weights(const Communicator& ranks) const {
    std::vector<Vector<float>> all;
    for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
      Kokkos::deep_copy(all.emplace_back("test::master", store.capacity(unit) / ranks.size()),
                        static_cast<float>(100 * unit + ranks.rank()));
    }
    return all;
  }
  /// Expects the values of all ranks' master weights, plus `added`.
  void expect_values(std::size_t unit, std::size_t ranks) const {
    const tests::Values values = tests::host_values(store.values<float>(unit));
    const std::size_t part = store.capacity(unit) / ranks;
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], static_cast<double>(100 * unit + added + i / part)) << "unit " << unit << ", element " << i;
    }
  }

  static ParameterTable make_table() {
    ParameterTable::Builder builder;
    for (const char* const name : {"a", "b", "c", "d"}) builder.unit(name).tensor(name, {5000}, {});
    builder.unit("e").tensor("e", {3000}, {}).borrow("a");
    return builder.build();
  }

  ParameterTable table = make_table();
  ParameterStore store;
  std::size_t added = 0;
};

}  // namespace mylos::parallel
