#pragma once

#include "core/arena.hpp"
#include "core/element_type.hpp"
#include "core/unit_hooks.hpp"
#include "nn/model.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "tests/support/arrays.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The inputs of a pass, for tests of layers and models without a trainer.
namespace mylos::tests {

/// Records a model's calls of the unit hooks.
class RecordingHooks final : public UnitHooks {
 public:
  enum class Event { acquire, release, gradients_ready };
  struct Entry {
    Event event;
    std::size_t unit;
    bool operator==(const Entry&) const = default;
  };

  explicit RecordingHooks(const ParameterStore& store) : store_(store) {}

  void acquire(std::size_t unit) override { entries_.push_back({Event::acquire, unit}); }
  void release(std::size_t unit) override { entries_.push_back({Event::release, unit}); }
  void gradients_ready(std::size_t unit) override {
    entries_.push_back({Event::gradients_ready, unit});
    Kokkos::fence("test::gradients_ready");
    gradients_[unit] = host_values(store_.unit_gradients(unit));
  }

  const std::vector<Entry>& entries() const { return entries_; }
  /// Returns a unit's gradients at the time of gradients_ready.
  const Values& gradients_when_ready(std::size_t unit) const { return gradients_.at(unit); }
  void clear() { entries_.clear(); }

 private:
  const ParameterStore& store_;
  std::vector<Entry> entries_;
  std::map<std::size_t, Values> gradients_;
};

/// Parameters set by their initialisers plus noise, so that gradients are not checked at special values such as zeros
/// and ones, together with memory, a provider and unit hooks.
class Engine {
 public:
  Engine(const ParameterTable& table, Precision precision, std::size_t arena_bytes, const std::string& provider)
      : store(table, precision, ParameterStore::Purpose::training),
        strategy(parallel::make_single_process_strategy(store)),
        gemm(provider),
        hooks(store),
        arena("mylos::test::arena", arena_bytes) {
    for (std::size_t row = 0; row < table.tensors().size(); ++row) {
      std::vector<float> values(table.tensor(row).size);
      initialize(table.tensor(row), 3, values);
      const Values noise = random_values(values.size(), 100 + row, 0.2);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(noise[i]);
      strategy->write_tensor(row, values);
    }
    strategy->sync_parameters(space, ChangedUnits::all);
    strategy->begin_step(space);
  }

  nn::Pass pass() { return {space, gemm, store, hooks, arena, seed, step}; }

  /// A parameter tensor's values as the model sees them, and its gradient.
  Values values(std::size_t row) const {
    return with_type(store.precision(), [&]<class T>(T) { return host_values(store.values<T>(row)); });
  }
  Values gradient(std::size_t row) const { return host_values(store.gradient(row)); }
  void write(std::size_t row, const Values& values) {
    strategy->write_tensor(row, std::vector<float>(values.begin(), values.end()));
    strategy->sync_parameters(space, ChangedUnits::all);
  }

  ExecutionSpace space;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
  Gemm gemm;
  RecordingHooks hooks;
  Arena arena;
  std::uint64_t seed = 9, step = 4;
};

/// Returns the expected calls of a training pass over units 0, 1, ..., n - 1: each unit in turn forwards, then in
/// reverse. The last unit is not released in between.
inline std::vector<RecordingHooks::Entry> expected_training_calls(std::size_t units) {
  using Event = RecordingHooks::Event;
  std::vector<RecordingHooks::Entry> entries;
  for (std::size_t unit = 0; unit < units; ++unit) {
    entries.push_back({Event::acquire, unit});
    if (unit + 1 < units) entries.push_back({Event::release, unit});
  }
  for (std::size_t unit = units; unit-- > 0;) {
    if (unit + 1 < units) entries.push_back({Event::acquire, unit});
    entries.push_back({Event::release, unit});
    entries.push_back({Event::gradients_ready, unit});
  }
  return entries;
}

/// Returns the expected calls of a forward pass.
inline std::vector<RecordingHooks::Entry> expected_prediction_calls(std::size_t units) {
  std::vector<RecordingHooks::Entry> entries;
  for (std::size_t unit = 0; unit < units; ++unit) {
    entries.push_back({RecordingHooks::Event::acquire, unit});
    entries.push_back({RecordingHooks::Event::release, unit});
  }
  return entries;
}

}  // namespace mylos::tests
