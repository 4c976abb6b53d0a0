#pragma once

#include "parallel/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Parameters of several sizes, and a rank's arrays of them as each sharding strategy distributes them.
namespace mylos::tests {

inline constexpr std::size_t test_alignment = 8;  ///< in elements; shards begin at multiples of it

/// Returns a table with tensors of 1 to 600,000 elements, a unit of a single element, and state tensors.
inline ParameterTable saved_table() {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("embeddings.weight", {600, 1000}, {}).tensor("embeddings.bias", {7}, {});
  builder.state("embeddings.mean", {3, 5}, {});
  builder.unit("layer").tensor("layer.weight", {13, 11, 2}, {}).tensor("layer.bias", {1}, {});
  builder.unit("head").tensor("head.bias", {1}, {}).state("head.variance", {4}, {});
  return builder.build();
}

/// Returns saved_table with a frozen unit, and a frozen tensor in another.
inline ParameterTable frozen_table() {
  ParameterTable table = saved_table();
  table.freeze([](const ParameterTensor& tensor) { return tensor.unit == 0 || tensor.name == "layer.bias"; });
  return table;
}

/// Returns saved_table with an adapter in two units, and all else frozen.
inline ParameterTable adapted_table() {
  ParameterTable table = saved_table();
  std::vector<ParameterTensor> adapters;
  for (const std::size_t unit : {0, 1}) {
    ParameterTensor adapter;
    adapter.name = unit == 0 ? "embeddings.lora_A" : "layer.lora_A";
    adapter.shape = {unit == 0 ? std::size_t{300} : std::size_t{1}, 7};
    adapter.size = adapter.shape[0] * adapter.shape[1];
    adapter.unit = unit;
    adapter.adapter = AdapterRule{};
    adapters.push_back(adapter);
  }
  table.adapt(std::move(adapters), [](const ParameterTensor&) { return true; });
  return table;
}

/// Returns a small table, whose checkpoint is small too.
inline ParameterTable small_table() {
  ParameterTable::Builder builder;
  builder.unit("one").tensor("one.weight", {5, 3}, {}).tensor("one.bias", {3}, {}).state("one.mean", {2}, {});
  builder.unit("two").tensor("two.weight", {4}, {});
  return builder.build();
}

/// Returns the value of an element. `salt` distinguishes checkpoints.
inline float saved_value(std::size_t group, std::size_t unit, std::size_t element, std::size_t salt) {
  return static_cast<float>(element % 9973) + 0.125f * static_cast<float>(group + 1) +
         10'000.0f * static_cast<float>(unit) + 0.5f * static_cast<float>(salt);
}

enum class Spread { replicated, sharded };

/// The arrays of one rank.
class SavedArrays {
 public:
  SavedArrays(const ParameterTable& table, Spread spread, std::size_t rank, std::size_t ranks) : table_(table) {
    arrays_.table = &table;
    arrays_.groups = {{"model", {}}, {"optimizer/m", {}}, {"optimizer/v", {}}};
    for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
      const std::size_t size = table.units()[unit].size, part = shard(size, ranks);
      if (spread == Spread::replicated) {
        arrays_.held.push_back({unit, 0, size});
      } else {
        arrays_.held.push_back({unit, rank * part, (rank + 1) * part});
      }
      for (parallel::CheckpointGroup& group : arrays_.groups) {
        const bool is_held = table.units()[unit].has_master;
        group.parts.emplace_back("test::part", is_held ? arrays_.held.back().end - arrays_.held.back().begin : 0);
      }
    }
    for (const ParameterTensor& tensor : table.state_tensors()) arrays_.state.emplace_back("test::state", tensor.size);
    arrays_.saved_range = [&table, ranks](std::size_t unit, std::size_t of) {
      const std::size_t size = table.units()[unit].size, part = shard(size, ranks);
      return parallel::UnitRange{std::min(of * part, size), std::min((of + 1) * part, size)};
    };
  }

  const parallel::CheckpointArrays& arrays() const { return arrays_; }
  /// Frozen tensors are saved in a file of their own.
  void freeze_in(parallel::FrozenFile& file) { arrays_.frozen = &file; }
  /// For replicated arrays: the ranks in `copies` hold the same ones.
  void share_with(parallel::Communicator& copies) { arrays_.copies = &copies; }

  void fill(std::size_t salt) {
    visit([salt](float& value, float expected) { value = expected + 0.5f * static_cast<float>(salt); });
  }
  /// Counts elements that differ from those set by `fill`. Padding must be zero.
  std::size_t differing(std::size_t salt) {
    std::size_t count = 0;
    visit([&](float& value, float expected) { count += value != expected + 0.5f * static_cast<float>(salt); });
    return count + padding_;
  }

 private:
  static std::size_t shard(std::size_t size, std::size_t ranks) {
    const std::size_t blocks = (size + test_alignment - 1) / test_alignment;
    return (blocks + ranks - 1) / ranks * test_alignment;
  }

  template <class Action>
  void visit(Action action) {
    padding_ = 0;
    for (std::size_t group = 0; group < arrays_.groups.size(); ++group) {
      for (std::size_t i = 0; i < arrays_.held.size(); ++i) {
        const parallel::HeldRange& held = arrays_.held[i];
        if (group > 0 && !table_.units()[held.unit].trained) continue;  // not saved
        const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), arrays_.groups[group].parts[i]);
        for (std::size_t k = 0; k < host.size(); ++k) {
          if (held.begin + k < table_.units()[held.unit].size) {
            action(host(k), saved_value(group, held.unit, held.begin + k, 0));
          } else {
            padding_ += host(k) != 0.0f;
          }
        }
        Kokkos::deep_copy(arrays_.groups[group].parts[i], host);
      }
    }
    for (std::size_t tensor = 0; tensor < arrays_.state.size(); ++tensor) {
      const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), arrays_.state[tensor]);
      for (std::size_t k = 0; k < host.size(); ++k) action(host(k), saved_value(9, tensor, k, 0));
      Kokkos::deep_copy(arrays_.state[tensor], host);
    }
  }

  const ParameterTable& table_;
  parallel::CheckpointArrays arrays_;
  std::size_t padding_ = 0;
};

/// Returns a record with members of each type.
inline parallel::CheckpointRecord saved_record(std::size_t step) {
  parallel::CheckpointRecord record;
  record.set("step", std::uint64_t{step});
  record.set("seed", std::uint64_t{0xffffffffffffffff});
  record.set("best", 0.1);
  record.set("configuration", std::string(5000, '{') + "\n\"a\"");
  record.set("empty", std::string());
  return record;
}

}  // namespace mylos::tests
