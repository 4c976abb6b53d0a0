#pragma once

#include "core/element_type.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// A sharding strategy on all ranks of a test program, with a small model whose gradients are known.
namespace mylos::parallel {

using tests::host_values;
using tests::Values;

/// The units and tensors that are frozen, by name.
struct FrozenNames {
  std::set<std::string> names = {};
  bool adapted = false;  ///< adapters are trained beside them, so that they have no master weights

  bool contain(const ParameterTable& table, const ParameterTensor& tensor) const {
    return names.contains(tensor.name) || names.contains(table.units()[tensor.unit].name);
  }
  std::string text() const { return fmt::format("{}{}", fmt::join(names, ", "), adapted ? ", adapted" : ""); }
};

/// Returns the tensor of an adapter that is added to a unit.
inline ParameterTensor adapter_tensor(const std::string& name, std::size_t unit, std::size_t size) {
  ParameterTensor tensor;
  tensor.name = name;
  tensor.shape = {size};
  tensor.size = size;
  tensor.unit = unit;
  tensor.adapter = AdapterRule{};
  return tensor;
}

/// Returns a table of four units. The last unit also reads the tensors of the first. The first and the third may have
/// adapters.
inline ParameterTable make_four_units(const FrozenNames& frozen = {}) {
  ParameterTable::Builder builder;
  builder.unit("first").tensor("words", {300, 10}, {}).tensor("scale", {700}, {}, {.decay = false});
  builder.unit("second").tensor("weight", {50, 100}, {});
  builder.unit("third").tensor("bias", {10}, {});
  builder.unit("last").tensor("out", {2048}, {}).borrow("first");
  ParameterTable table = builder.build();
  const auto is_frozen = [&](const ParameterTensor& tensor) { return frozen.contain(table, tensor); };
  if (frozen.adapted) {
    table.adapt({adapter_tensor("words.lora", 0, 900), adapter_tensor("bias.lora", 2, 1300)}, is_frozen);
  } else {
    table.freeze(is_frozen);
  }
  return table;
}
/// The frozen units or tensors of each run: none; a unit that backward passes go through; all units below the last,
/// which borrows from one of them; most tensors of the borrowed unit, and a whole unit. Then all tensors beside
/// adapters, and most.
inline const FrozenNames frozen_units[] = {{},
                                           {{"second"}},
                                           {{"first", "second", "third"}},
                                           {{"words", "second"}},
                                           {{"first", "second", "third", "last"}, true},
                                           {{"words", "second"}, true}};

/// Returns small integers, so that every sum is exact in every type.
inline float small_gradient(std::size_t rank, std::size_t pass, std::size_t unit, std::size_t i) {
  return static_cast<float>((3 * rank + 5 * pass + 2 * unit + i) % 5);
}
inline float initial_value(std::size_t row, std::size_t i) { return static_cast<float>((7 * row + i) % 100); }

/// A sharding strategy with its parameter store, and the operations that a model would perform.
class StrategyRun {
 public:
  using GradientOf = std::function<float(std::size_t rank, std::size_t pass, std::size_t unit, std::size_t i)>;

  /// `world` contains all ranks. `load` is called when the master weights are set, before values are made of them.
  StrategyRun(const StrategySettings& settings, Precision precision, std::size_t group = 2,
              Communicator& world = tests::launch().world(), const std::function<void(ShardingStrategy&)>& load = {},
              const FrozenNames& frozen = {})
      : settings_(settings),
        table_(make_four_units(frozen)),
        mesh_(world, ranks_that_split(settings.kind, group, world.size())),
        store_(table_, precision, ParameterStore::Purpose::training, store_layout(settings.kind, mesh_.shard().size())),
        strategy_(make_sharding_strategy(settings, mesh_, store_)) {
    for (std::size_t row = 0; row < table_.tensors().size(); ++row) {
      std::vector<float> values(table_.tensor(row).size);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = initial_value(row, i);
      strategy_->write_tensor(row, values);
    }
    if (load) load(*strategy_);
    strategy_->sync_parameters(space_, ChangedUnits::all);
  }

  /// Runs a step. Each micro-batch adds its gradients; the last unit also adds gradients to the tensors of the first
  /// unit.
  void step(std::size_t index) {
    strategy_->begin_step(space_);
    for (std::size_t batch = 0; batch < settings_.micro_batches; ++batch) {
      strategy_->begin_micro_batch(batch + 1 == settings_.micro_batches);
      pass(index * settings_.micro_batches + batch);
    }
    strategy_->finish_gradients();
  }

  /// Runs the model's pass over a micro-batch.
  void pass(std::size_t index) {
    UnitHooks& hooks = strategy_->hooks();
    const std::size_t units = table_.network_units();
    for (std::size_t unit = 0; unit < units; ++unit) {
      hooks.acquire(unit);
      if (unit + 1 < units) hooks.release(unit);
    }
    for (std::size_t unit = units; unit-- > table_.first_trained_unit();) {
      if (unit + 1 < units) hooks.acquire(unit);
      add_gradients(unit, index);
      for (const std::size_t borrowed : table_.units()[unit].borrowed) add_gradients(borrowed, index);
      hooks.release(unit);
      if (!table_.units()[unit].trained) continue;
      hooks.gradients_ready(unit);
      if (on_ready_) on_ready_(unit);
    }
  }

  /// Sets the gradients of later steps.
  void set_gradients(GradientOf gradients) { gradient_of_ = std::move(gradients); }
  /// Sets a callback after gradients_ready of a unit, called on all ranks.
  void set_on_ready(std::function<void(std::size_t unit)> reported) { on_ready_ = std::move(reported); }

  /// Returns the expected gradients of a unit after a step, over all ranks and micro-batches.
  Values expected_gradient(std::size_t unit, std::size_t index) const {
    Values sums(table_.units()[unit].size, 0.0);
    for (std::size_t rank = 0; rank < mesh_.world().size(); ++rank) {
      for (std::size_t batch = 0; batch < settings_.micro_batches; ++batch) {
        const std::size_t pass = index * settings_.micro_batches + batch;
        const double times = unit == 0 ? 2.0 : 1.0;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += times * gradient_of_(rank, pass, unit, i);
      }
    }
    return sums;
  }

  void expect_gradients(std::size_t index) {
    double squares = 0.0;
    for (const ParameterSlice& part : strategy_->slices()) {
      if (!table_.units()[part.unit].trained) {
        EXPECT_EQ(part.gradient.size(), 0u) << table_.units()[part.unit].name;
        continue;
      }
      const Values all = expected_gradient(part.unit, index);
      for (const double value : all) squares += value * value;
      const std::size_t begin = std::min(part.begin, all.size()), end = std::min(part.end, all.size());
      Values actual = host_values(part.gradient);
      actual.resize(end - begin);
      EXPECT_EQ(actual, Values(all.begin() + static_cast<std::ptrdiff_t>(begin),
                               all.begin() + static_cast<std::ptrdiff_t>(end)))
          << table_.units()[part.unit].name;
    }
    const nn::GradientNorm norm(table_, strategy_->slices());
    const Vector<double> sum("test::sum", 1);
    strategy_->sum_of_blocks(space_, norm.block_sums(space_), sum);
    EXPECT_EQ(host_values(sum), Values{squares});
    expect_joined();
  }

  /// Checks the sum of values of which each rank has its own.
  void expect_joined() {
    const std::size_t ranks = mesh_.world().size();
    Values mine(2 * ranks, 0.0), all;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      all.push_back(1.0f / static_cast<float>(3 + i));
      if (i % ranks == mesh_.world().rank()) mine[i] = all[i];
    }
    const auto values = tests::device_vector<double>(mine);
    strategy_->join_values(space_, values, "test");
    EXPECT_EQ(host_values(values), all);
  }

  /// Adds 1 to the master weights of trained units, as an optimizer would.
  void update() {
    for (const ParameterSlice& part : strategy_->slices()) {
      if (!table_.units()[part.unit].trained) continue;
      const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), part.master);
      for (std::size_t i = 0; i < host.size(); ++i) host(i) += 1.0f;
      Kokkos::deep_copy(part.master, host);
    }
    strategy_->sync_parameters(space_, ChangedUnits::trained);
  }

  /// Checks the values that a forward pass sees, and the master weights that an export reads.
  void expect_values(float added) {
    for (std::size_t unit = 0; unit < table_.network_units(); ++unit) {
      strategy_->hooks().acquire(unit);
      for (const std::size_t read : table_.read_by(unit)) expect_unit(read, added);
      strategy_->hooks().release(unit);
    }
    for (std::size_t row = 0; row < table_.tensors().size(); ++row) {
      const std::size_t first = table_.tensor(row).size / 3;
      std::vector<float> values(table_.tensor(row).size - first);
      strategy_->read_tensor(row, first, values);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], initial_value(row, first + i) + (table_.tensor(row).group.trainable ? added : 0.0f))
            << row;
    }
  }

  /// Checks that a forward pass sees the master weights, rounded to the precision of the values.
  void expect_values_of_master_weights() {
    std::vector<std::vector<float>> master_weights;
    for (std::size_t row = 0; row < table_.tensors().size(); ++row) {
      strategy_->read_tensor(row, 0, master_weights.emplace_back(table_.tensor(row).size));
    }
    for (std::size_t unit = 0; unit < table_.network_units(); ++unit) {
      strategy_->hooks().acquire(unit);
      const std::vector<std::size_t> parts = table_.parts(unit);
      for (std::size_t row = 0; row < table_.tensors().size(); ++row) {
        if (std::ranges::count(parts, table_.tensor(row).unit) > 0) expect_rounded(row, master_weights[row]);
      }
      strategy_->hooks().release(unit);
    }
  }

  const ParameterTable& table() const { return table_; }
  ShardingStrategy& strategy() { return *strategy_; }
  Mesh& mesh() { return mesh_; }

 private:
  void add_gradients(std::size_t unit, std::size_t pass) {
    if (!table_.units()[unit].trained) return;
    for (std::size_t row = 0; row < table_.tensors().size(); ++row) {
      const ParameterTensor& description = table_.tensor(row);
      if (description.unit != unit) continue;
      const bool whole = store_.begins_gradient(row, 1);
      const Vector<float> gradient = store_.gradient(row);
      const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), gradient);
      for (std::size_t i = 0; i < host.size(); ++i) {
        const float value = gradient_of_(mesh_.world().rank(), pass, unit, description.offset + i);
        host(i) = whole ? value : host(i) + value;
      }
      Kokkos::deep_copy(gradient, host);
    }
  }

  void expect_rounded(std::size_t row, const std::vector<float>& master_weights) const {
    with_type(store_.precision(), [&]<class T>(T) {
      Values expected;
      for (const float weight : master_weights) expected.push_back(static_cast<float>(T(weight)));
      EXPECT_EQ(host_values(store_.values<T>(row)), expected) << table_.tensor(row).name;
    });
  }

  void expect_unit(std::size_t unit, float added_if_trained) {
    const float added = table_.units()[unit].trained ? added_if_trained : 0.0f;
    for (std::size_t row = 0; row < table_.tensors().size(); ++row) {
      if (table_.tensor(row).unit != unit) continue;
      const Values values =
          with_type(store_.precision(), [&]<class T>(T) { return host_values(store_.values<T>(row)); });
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], initial_value(row, i) + added) << row << " " << i;
    }
  }

  StrategySettings settings_;
  GradientOf gradient_of_ = small_gradient;
  std::function<void(std::size_t unit)> on_ready_;
  ExecutionSpace space_;
  ParameterTable table_;
  Mesh mesh_;
  ParameterStore store_;
  std::unique_ptr<ShardingStrategy> strategy_;
};

}  // namespace mylos::parallel
