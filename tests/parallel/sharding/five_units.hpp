#pragma once

#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/unit_arrays.hpp"
#include "tests/support/arrays.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace mylos::parallel {

/// Sharded values that are gathered unit by unit. The last unit also reads the tensors of the first.
struct FiveUnits {
  explicit FiveUnits(Communicator& world) : ranks(world) { set_master_weights(0); }

  /// Sets master weights to 100 times the unit's index, plus the rank, plus `more`.
  void set_master_weights(std::size_t more) {
    added = more;
    for (const ParameterSlice& slice : slices) {
      Kokkos::deep_copy(slice.master, static_cast<float>(100 * slice.unit + more + ranks.rank()));
    }
  }
  /// Expects the values of all ranks' master weights.
  void expect_values(std::size_t unit) const {
    const tests::Values values = tests::host_values(store.values<float>(unit));
    const std::size_t part = exchanges.slice_size(unit);
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

  std::vector<ParameterSlice> make_slices() const {
    std::vector<ParameterSlice> all;
    for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
      all.push_back(
          {.unit = unit, .master = Vector<float>("test::master", exchanges.slice_size(unit)), .gradient = {}});
    }
    return all;
  }

  Communicator& ranks;
  ParameterTable table = make_table();
  UnitExchanges exchanges{.settings = {.kind = StrategyKind::sharded}, .shards = ranks.size(), .table = table};
  ParameterStore store{table, Precision::float32, ParameterStore::Purpose::inference,
                       store_layout(StrategyKind::sharded, ranks.size())};
  std::vector<ParameterSlice> slices = make_slices();
  ValueArrays arrays{exchanges, ranks, store, slices};
  std::unique_ptr<ValuePolicy> values = make_value_policy(exchanges, arrays, 0);
  std::size_t added = 0;
};

}  // namespace mylos::parallel
