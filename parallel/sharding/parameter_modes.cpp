#include "core/base/error.hpp"
#include "core/trace.hpp"
#include "parallel/sharding/block_sum.hpp"
#include "parallel/sharding/gathered_units.hpp"
#include "parallel/sharding/parameter_mode.hpp"
#include "parallel/sharding/unit_gradients.hpp"
#include "parallel/sharding/whole_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mylos::parallel {
namespace {

using HostValues = Kokkos::View<float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;
using ConstHostValues = Kokkos::View<const float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;

/// What the modes share: slices, masters, rows on the host, and the sums over them.
class SlicedMode : public ParameterMode, private UnitSchedule {
 public:
  UnitSchedule& schedule() override { return *this; }
  std::span<const ParameterSlice> slices() const override { return slices_; }
  UnitRange saved_range(std::size_t unit, std::size_t rank) const override;
  double sum_of_blocks(std::span<const double> values) override;
  void read_row(std::size_t row, std::size_t first, std::span<float> values) override;
  void gather_row(std::size_t row, std::size_t first, std::span<float> values) override;
  RowRange owned_range(std::size_t row) const override;
  Communicator& copies() override { return mesh_.replicate(); }
  void copy_row(std::size_t row, std::size_t first, std::size_t count, std::size_t from) override;
  void write_row(std::size_t row, std::size_t first, std::span<const float> values) override;

 protected:
  SlicedMode(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : mesh_(mesh),
        ranks_(mesh.shard()),
        store_(store),
        tree_sums_(settings.tree_sums),
        acquired_(store.table().units().size()) {
    require(store.layout().shards == ranks_.size(),
            fmt::format("parameter mode: a store of {} shards for {} ranks", store.layout().shards, ranks_.size()));
  }

  void add_slice(std::size_t unit, const Vector<float>& master, const Vector<float>& gradient) {
    const std::size_t size = shard_size(store_.table().units()[unit].size, ranks_.size());
    slices_.push_back({unit, ranks_.rank() * size, (ranks_.rank() + 1) * size, master, gradient});
  }
  const std::string& unit_name(std::size_t unit) const { return store_.table().units()[unit].name; }
  Vector<float> new_master(std::size_t unit) const {
    return Vector<float>(fmt::format("mylos::masters::{}", unit_name(unit)), store_.capacity(unit) / ranks_.size());
  }
  /// Returns when the unit's values are complete.
  virtual void complete_values(std::size_t unit) = 0;
  virtual void leave_values(std::size_t unit) = 0;
  virtual void reduce_gradients(std::size_t unit) = 0;

  /// Calls `use(owner, piece, first)` for each piece of a row's values that one rank of ranks_ has, `first` being its
  /// place in the unit.
  template <class Use>
  void for_each_owner(std::size_t row, std::size_t first, std::span<float> values, const Use& use) const;
  /// piece = masters from element `first` of this rank's slice of a unit on.
  void copy_masters(const ParameterSlice& mine, std::size_t first, std::span<float> piece) const {
    Kokkos::deep_copy(HostValues(piece.data(), piece.size()),
                      slice(mine.master, first - mine.begin, first - mine.begin + piece.size()));
  }

  /// This rank's part of a unit's memory.
  template <class T>
  Vector<T> part_of(const Vector<T>& unit) const {
    const std::size_t part = unit.size() / ranks_.size();
    return slice(unit, ranks_.rank() * part, (ranks_.rank() + 1) * part);
  }
  template <class T>
  Vector<T> whole_values(std::size_t unit) const {
    return Vector<T>(reinterpret_cast<T*>(store_.value_memory(unit).data()), store_.capacity(unit));
  }

  Mesh& mesh_;
  Communicator& ranks_;  ///< that split the units
  ParameterStore& store_;
  std::vector<ParameterSlice> slices_;

 private:
  void acquire(std::size_t unit) final {
    {
      const TraceSpan span(TraceLane::waiting, "values of", unit_name(unit));
      complete_values(unit);
    }
    acquired_[unit] = Trace::Clock::now();
  }
  void release(std::size_t unit) final {
    if (Trace::is_on()) Trace::add(TraceLane::compute, unit_name(unit), acquired_[unit], Trace::Clock::now());
    leave_values(unit);
  }
  void gradients_ready(std::size_t unit) final { reduce_gradients(unit); }

  bool tree_sums_;
  std::vector<Trace::Clock::time_point> acquired_;  ///< when each unit was last
};

UnitRange SlicedMode::saved_range(std::size_t unit, std::size_t rank) const {
  const std::size_t size = store_.table().units()[unit].size, shards = ranks_.size();
  const std::size_t copies = mesh_.world().size() / shards, copy = rank / shards;
  const std::size_t part = shard_size(size, shards), begin = rank % shards * part;
  // Ranks that hold the same slice share the writing.
  const std::size_t share = shard_size(part, copies);
  const auto bounded = [&](std::size_t at) { return std::min({begin + std::min(at, part), size}); };
  return {bounded(copy * share), bounded((copy + 1) * share)};
}

double SlicedMode::sum_of_blocks(std::span<const double> values) {
  if (tree_sums_) return tree_sum_of_blocks(ranks_, store_.table(), values);
  double sum = 0.0;
  for (const double value : values) sum += value;
  ranks_.all_reduce({}, {&sum, 1, ElementType::float64, Place::host}, "norm of the gradients").wait({});
  return sum;
}

template <class Use>
void SlicedMode::for_each_owner(std::size_t row, std::size_t first, std::span<float> values, const Use& use) const {
  const ParameterRow& description = store_.table().row(row);
  check_range(description, first, values.size());
  const ParameterSlice& mine = slices_[description.unit];
  const std::size_t part = mine.end - mine.begin, begin = description.offset + first, end = begin + values.size();
  for (std::size_t at = begin; at < end;) {
    const std::size_t owner = at / part, piece_end = std::min(end, (owner + 1) * part);
    use(owner, values.subspan(at - begin, piece_end - at), at);
    at = piece_end;
  }
}

void SlicedMode::read_row(std::size_t row, std::size_t first, std::span<float> values) {
  const ParameterSlice& mine = slices_[store_.table().row(row).unit];
  for_each_owner(row, first, values, [&](std::size_t owner, std::span<float> piece, std::size_t at) {
    if (owner == ranks_.rank()) copy_masters(mine, at, piece);
    ranks_.broadcast({}, {piece.data(), piece.size(), ElementType::float32, Place::host}, owner, "rows").wait({});
  });
}

void SlicedMode::gather_row(std::size_t row, std::size_t first, std::span<float> values) {
  constexpr std::size_t root = 0;
  // The world's first rank is the first of its group; the other groups have the same values.
  if (mesh_.world().rank() >= ranks_.size()) return check_range(store_.table().row(row), first, values.size());
  const ParameterSlice& mine = slices_[store_.table().row(row).unit];
  for_each_owner(row, first, values, [&](std::size_t owner, std::span<float> piece, std::size_t at) {
    if (owner == ranks_.rank()) copy_masters(mine, at, piece);
    if (owner == root) return;
    ranks_.transfer({}, {piece.data(), piece.size(), ElementType::float32, Place::host}, owner, root, "rows").wait({});
  });
}

RowRange SlicedMode::owned_range(std::size_t row) const {
  const ParameterRow& description = store_.table().row(row);
  const ParameterSlice& mine = slices_[description.unit];
  const auto bounded = [&](std::size_t at) {
    return std::clamp(at, description.offset, description.offset + description.size) - description.offset;
  };
  return {bounded(mine.begin), bounded(mine.end)};
}

void SlicedMode::copy_row(std::size_t row, std::size_t first, std::size_t count, std::size_t from) {
  const ParameterRow& description = store_.table().row(row);
  const RowRange owned = owned_range(row);
  require(owned.begin <= first && first + count <= owned.end,
          fmt::format("copy of {}: elements {} to {}, of which this rank has {} to {}", description.name, first,
                      first + count, owned.begin, owned.end));
  const ParameterSlice& mine = slices_[description.unit];
  const std::size_t begin = description.offset + first - mine.begin;
  const ExecutionSpace space;
  copies().broadcast(space, buffer_of(slice(mine.master, begin, begin + count)), from, "rows").wait(space);
}

void SlicedMode::write_row(std::size_t row, std::size_t first, std::span<const float> values) {
  const ParameterRow& description = store_.table().row(row);
  check_range(description, first, values.size());
  const RowRange owned = owned_range(row);
  const std::size_t begin = std::max(first, owned.begin), end = std::min(first + values.size(), owned.end);
  if (begin >= end) return;
  const ParameterSlice& mine = slices_[description.unit];
  const ConstHostValues source(values.data() + (begin - first), end - begin);
  const std::size_t target = description.offset + begin - mine.begin;
  Kokkos::deep_copy(slice(mine.master, target, target + source.size()), source);
}

/// Values whole on every rank; gradients and optimizer whole or in slices. What one rank updates the others gather,
/// each unit until it is acquired.
class WholeValuesMode : public SlicedMode {
 public:
  WholeValuesMode(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : SlicedMode(settings, mesh, store), gathered_(store.table().units().size()) {}

  ~WholeValuesMode() override {
    for (const Event& event : gathered_) event.wait_for_its_end();
  }
  WholeValuesMode(const WholeValuesMode&) = delete;
  WholeValuesMode& operator=(const WholeValuesMode&) = delete;

  void publish_values(const ExecutionSpace& space) override {
    for (std::size_t unit = 0; unit < slices_.size(); ++unit) {
      // A pass that did not use the unit left it. Its result is old, and the optimizer has written to the same memory.
      gathered_[unit].wait_for_its_end();
      gathered_[unit] = publish_unit(space, unit);
    }
  }

 protected:
  void complete_values(std::size_t unit) override {
    for (const std::size_t borrowed : store_.table().units()[unit].borrowed) gathered_[borrowed].wait({});
    gathered_[unit].wait({});
  }
  void leave_values(std::size_t) override {}

  /// Float masters are the rank's part of the values themselves.
  Vector<float> master_of(std::size_t unit) const {
    return store_.precision() == Precision::float32 ? part_of(whole_values<float>(unit)) : new_master(unit);
  }

 private:
  Event publish_unit(const ExecutionSpace& space, std::size_t unit) {
    const Vector<std::byte> values = store_.value_memory(unit), mine = part_of(values);
    if (store_.precision() != Precision::float32) round_master(space, slices_[unit].master, store_.precision(), mine);
    return ranks_.all_gather(space, buffer_of(mine), buffer_of(values), fmt::format("values of {}", unit_name(unit)));
  }

  std::vector<Event> gathered_;
};

/// replicated and sharded-optimizer: gradients are whole, and summed over ranks after the last micro-batch.
class WholeGradientsMode : public WholeValuesMode {
 public:
  WholeGradientsMode(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : WholeValuesMode(settings, mesh, store), gradients_(settings, mesh, store) {
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) {
      const Vector<float> gradients = store.gradient_memory(unit);
      add_slice(unit, master_of(unit), gradients.extent(0) > 0 ? part_of(gradients) : gradients);
    }
  }

  void begin_step(const ExecutionSpace& space) override { gradients_.begin_step(space); }
  void begin_micro_batch(bool last) override { gradients_.begin_micro_batch(last); }
  void finish_gradients(const ExecutionSpace& space) override { gradients_.finish(space); }

 private:
  void reduce_gradients(std::size_t unit) override { gradients_.ready(unit); }

  WholeGradients gradients_;
};

Vector<float> new_gradient(const ParameterStore& store, std::size_t unit, std::size_t shards) {
  return Vector<float>(fmt::format("mylos::gradients::{}", store.table().units()[unit].name),
                       store.capacity(unit) / shards);
}

/// sharded-gradients: each micro-batch's gradients are summed into slices.
class SlicedGradientsMode final : public WholeValuesMode {
 public:
  SlicedGradientsMode(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : WholeValuesMode(settings, mesh, store) {
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) {
      add_slice(unit, master_of(unit), new_gradient(store, unit, ranks_.size()));
    }
    gradients_.emplace(settings, mesh, store, slices_);
  }

  void begin_step(const ExecutionSpace& space) override { gradients_->begin_step(space); }
  void begin_micro_batch(bool last) override { gradients_->begin_micro_batch(last); }
  void finish_gradients(const ExecutionSpace& space) override { gradients_->finish(space); }

 private:
  void reduce_gradients(std::size_t unit) override { gradients_->reduce(unit); }

  std::optional<UnitGradients> gradients_;
};

/// sharded and hybrid: values too are slices, gathered unit by unit.
class ShardedMode final : public SlicedMode {
 public:
  ShardedMode(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : SlicedMode(settings, mesh, store), values_(ranks_, store, new_masters()) {
    const bool trains = store.purpose() == ParameterStore::Purpose::training;
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) {
      add_slice(unit, values_.master(unit), trains ? new_gradient(store, unit, ranks_.size()) : Vector<float>());
    }
    if (trains) gradients_.emplace(settings, mesh, store, slices_);
  }

  void begin_step(const ExecutionSpace& space) override {
    space_ = space;
    gradients_->begin_step(space);
  }
  void begin_micro_batch(bool last) override { gradients_->begin_micro_batch(last); }
  void finish_gradients(const ExecutionSpace& space) override { gradients_->finish(space); }

  void publish_values(const ExecutionSpace& space) override {
    values_.invalidate();
    values_.prefetch(space);
  }

 private:
  void complete_values(std::size_t unit) override { values_.acquire(space_, unit); }
  void leave_values(std::size_t unit) override { values_.release(unit); }
  void reduce_gradients(std::size_t unit) override { gradients_->reduce(unit); }

  std::vector<Vector<float>> new_masters() const {
    std::vector<Vector<float>> masters;
    for (std::size_t unit = 0; unit < store_.table().units().size(); ++unit) masters.push_back(new_master(unit));
    return masters;
  }

  GatheredUnits values_;
  std::optional<UnitGradients> gradients_;
  ExecutionSpace space_;
};

/// A group of one, as a base so that it is there before the mode.
struct OwnMesh {
  std::unique_ptr<Communicator> self = make_self_communicator();
  Mesh mesh{*self, 1};
};

class SingleProcessMode final : private OwnMesh, public WholeGradientsMode {
 public:
  explicit SingleProcessMode(ParameterStore& store) : WholeGradientsMode({}, OwnMesh::mesh, store) {}
};

}  // namespace

std::unique_ptr<ParameterMode> make_parameter_mode(const ModeSettings& settings, Mesh& mesh, ParameterStore& store) {
  if (shards_values(settings.kind)) return std::make_unique<ShardedMode>(settings, mesh, store);
  if (shards_gradients(settings.kind)) return std::make_unique<SlicedGradientsMode>(settings, mesh, store);
  return std::make_unique<WholeGradientsMode>(settings, mesh, store);
}

std::unique_ptr<ParameterMode> make_single_process_mode(ParameterStore& store) {
  return std::make_unique<SingleProcessMode>(store);
}

}  // namespace mylos::parallel
