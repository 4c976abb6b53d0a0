#include "core/base/error.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/trace.hpp"
#include "parallel/sharding/all_reduced_gradients.hpp"
#include "parallel/sharding/exact_sum.hpp"
#include "parallel/sharding/parameter_gatherer.hpp"
#include "parallel/sharding/sharded_gradients.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/unit_batch.hpp"
#include "parallel/sharding/unit_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace mylos::parallel {
namespace {

using HostValues = Kokkos::View<float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;
using ConstHostValues = Kokkos::View<const float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;

/// Common base of all modes: slices, master weights, access to tensors from the host, and sums over ranks.
class SlicedStrategy : public ShardingStrategy, private UnitHooks {
 public:
  UnitHooks& hooks() override { return *this; }
  std::span<const ParameterSlice> slices() const override { return slices_; }
  UnitRange saved_range(std::size_t unit, std::size_t rank) const override;
  void sum_of_blocks(const ExecutionSpace& space, const ConstVector<double>& values,
                     const Vector<double>& sum) override;
  void join_values(const ExecutionSpace& space, const Vector<double>& values, const std::string& what) override;
  void read_tensor(std::size_t tensor, std::size_t first, std::span<float> values) override;
  void gather_tensor(std::size_t tensor, std::size_t first, std::span<float> values, std::size_t root) override;
  TensorRange owned_range(std::size_t tensor) const override;
  Communicator& world() override { return mesh_.world(); }
  Communicator& copies() override { return mesh_.replicate(); }
  void copy_tensor(std::size_t tensor, std::size_t first, std::size_t count, std::size_t from) override;
  void write_tensor(std::size_t tensor, std::size_t first, std::span<const float> values) override;

 protected:
  SlicedStrategy(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : mesh_(mesh), ranks_(mesh.shard()), store_(store), acquired_(store.table().units().size()) {
    require(store.layout().shards == ranks_.size(),
            fmt::format("sharding strategy: a store of {} shards for {} ranks", store.layout().shards, ranks_.size()));
    if (settings.tree_sums) exact_sum_.emplace(ranks_);
  }

  void add_slice(std::size_t unit, const Vector<float>& master, const Vector<float>& gradient,
                 std::shared_ptr<RoundedCopy> rounded = nullptr) {
    const std::size_t size = shard_size(store_.table().units()[unit].size, ranks_.size());
    slices_.push_back({unit, ranks_.rank() * size, (ranks_.rank() + 1) * size, master, gradient, std::move(rounded)});
  }
  const std::string& unit_name(std::size_t unit) const { return store_.table().units()[unit].name; }
  Vector<float> new_master(std::size_t unit) const {
    return Vector<float>(fmt::format("mylos::master_weights::{}", unit_name(unit)),
                         store_.capacity(unit) / ranks_.size());
  }
  /// Returns when the unit's values are complete.
  virtual void complete_values(std::size_t unit) = 0;
  virtual void leave_values(std::size_t unit) = 0;
  virtual void reduce_gradients(std::size_t unit) = 0;

  /// Calls `use(owner, piece, first)` for each piece of a tensor's values that belongs to one rank of ranks_. `first`
  /// is the index of the piece in the unit.
  template <class Use>
  void for_each_owner(std::size_t tensor, std::size_t first, std::span<float> values, const Use& use) const;
  /// Copies master weights, from element `first` of the unit on, from this rank's slice to `piece`.
  void copy_master_weights(const ParameterSlice& mine, std::size_t first, std::span<float> piece) const {
    Kokkos::deep_copy(HostValues(piece.data(), piece.size()),
                      slice(mine.master, first - mine.begin, first - mine.begin + piece.size()));
  }

  /// Returns this rank's part of a unit's memory.
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
  Communicator& ranks_;  ///< the ranks among which units are split
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

  std::optional<ExactSum> exact_sum_;               ///< set if sums of blocks are exact
  std::vector<Trace::Clock::time_point> acquired_;  ///< time of each unit's last acquisition
};

UnitRange SlicedStrategy::saved_range(std::size_t unit, std::size_t rank) const {
  const std::size_t size = store_.table().units()[unit].size, shards = ranks_.size();
  const std::size_t copies = mesh_.world().size() / shards, copy = rank / shards;
  const std::size_t part = shard_size(size, shards), begin = rank % shards * part;
  // The ranks that hold the same slice each write a part of it.
  const std::size_t share = shard_size(part, copies);
  const auto bounded = [&](std::size_t at) { return std::min({begin + std::min(at, part), size}); };
  return {bounded(copy * share), bounded((copy + 1) * share)};
}

void SlicedStrategy::sum_of_blocks(const ExecutionSpace& space, const ConstVector<double>& values,
                                   const Vector<double>& sum) {
  const std::string what = "norm of the gradients";
  if (exact_sum_) return (*exact_sum_)(space, values, sum, what);
  sum_in_order(space, values, sum);
  ranks_.all_reduce(space, {sum.data(), sum.size(), ElementType::float64}, what).wait(space);
}

void SlicedStrategy::join_values(const ExecutionSpace& space, const Vector<double>& values, const std::string& what) {
  const Buffer data{values.data(), values.size(), ElementType::float64};
  ranks_.all_reduce(space, data, what).wait(space);
  mesh_.replicate().all_reduce(space, data, what).wait(space);
}

template <class Use>
void SlicedStrategy::for_each_owner(std::size_t tensor, std::size_t first, std::span<float> values,
                                    const Use& use) const {
  const ParameterTensor& description = store_.table().tensor(tensor);
  check_range(description, first, values.size());
  const ParameterSlice& mine = slices_[description.unit];
  const std::size_t part = mine.end - mine.begin, begin = description.offset + first, end = begin + values.size();
  for (std::size_t at = begin; at < end;) {
    const std::size_t owner = at / part, piece_end = std::min(end, (owner + 1) * part);
    use(owner, values.subspan(at - begin, piece_end - at), at);
    at = piece_end;
  }
}

void SlicedStrategy::read_tensor(std::size_t tensor, std::size_t first, std::span<float> values) {
  const ParameterSlice& mine = slices_[store_.table().tensor(tensor).unit];
  for_each_owner(tensor, first, values, [&](std::size_t owner, std::span<float> piece, std::size_t at) {
    if (owner == ranks_.rank()) copy_master_weights(mine, at, piece);
    ranks_.broadcast({}, {piece.data(), piece.size(), ElementType::float32, MemoryKind::host}, owner, "tensors")
        .wait({});
  });
}

void SlicedStrategy::gather_tensor(std::size_t tensor, std::size_t first, std::span<float> values, std::size_t root) {
  // Only the root's shard group takes part; the other groups hold the same values.
  if (mesh_.world().rank() / ranks_.size() != root / ranks_.size()) {
    return check_range(store_.table().tensor(tensor), first, values.size());
  }
  const std::size_t root_of_group = root % ranks_.size();
  const ParameterSlice& mine = slices_[store_.table().tensor(tensor).unit];
  for_each_owner(tensor, first, values, [&](std::size_t owner, std::span<float> piece, std::size_t at) {
    if (owner == ranks_.rank()) copy_master_weights(mine, at, piece);
    if (owner == root_of_group) return;
    const Buffer values_of_owner{piece.data(), piece.size(), ElementType::float32, MemoryKind::host};
    ranks_.transfer({}, values_of_owner, owner, root_of_group, "tensors").wait({});
  });
}

TensorRange SlicedStrategy::owned_range(std::size_t tensor) const {
  const ParameterTensor& description = store_.table().tensor(tensor);
  const ParameterSlice& mine = slices_[description.unit];
  const auto bounded = [&](std::size_t at) {
    return std::clamp(at, description.offset, description.offset + description.size) - description.offset;
  };
  return {bounded(mine.begin), bounded(mine.end)};
}

void SlicedStrategy::copy_tensor(std::size_t tensor, std::size_t first, std::size_t count, std::size_t from) {
  const ParameterTensor& description = store_.table().tensor(tensor);
  const TensorRange owned = owned_range(tensor);
  require(owned.begin <= first && first + count <= owned.end,
          fmt::format("copy of {}: elements {} to {}, of which this rank has {} to {}", description.name, first,
                      first + count, owned.begin, owned.end));
  const ParameterSlice& mine = slices_[description.unit];
  const std::size_t begin = description.offset + first - mine.begin;
  const ExecutionSpace space;
  copies().broadcast(space, buffer_of(slice(mine.master, begin, begin + count)), from, "tensors").wait(space);
}

void SlicedStrategy::write_tensor(std::size_t tensor, std::size_t first, std::span<const float> values) {
  const ParameterTensor& description = store_.table().tensor(tensor);
  check_range(description, first, values.size());
  const TensorRange owned = owned_range(tensor);
  const std::size_t begin = std::max(first, owned.begin), end = std::min(first + values.size(), owned.end);
  if (begin >= end) return;
  const ParameterSlice& mine = slices_[description.unit];
  const ConstHostValues source(values.data() + (begin - first), end - begin);
  const std::size_t target = description.offset + begin - mine.begin;
  Kokkos::deep_copy(slice(mine.master, target, target + source.size()), source);
  if (mine.rounded != nullptr) mine.rounded->is_current = false;
}

/// Values are complete on every rank; gradients and optimizer state are complete or sharded. After an update, each unit
/// is gathered before it is acquired, small ones together.
class WholeValuesStrategy : public SlicedStrategy {
 public:
  WholeValuesStrategy(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : SlicedStrategy(settings, mesh, store), gathered_(store.table().units().size()) {}

  ~WholeValuesStrategy() override {
    for (const Event& event : gathered_) event.wait_for_its_end();
  }
  WholeValuesStrategy(const WholeValuesStrategy&) = delete;
  WholeValuesStrategy& operator=(const WholeValuesStrategy&) = delete;

  void sync_parameters(const ExecutionSpace& space, ChangedUnits changed) override {
    UnitBatch batch(ranks_.least_gather_bytes(), [&](std::span<const std::size_t> units) { sync_units(space, units); });
    for (std::size_t unit = 0; unit < slices_.size(); ++unit) {
      if (changed == ChangedUnits::trained && !store_.table().units()[unit].trained) continue;
      // If no pass acquired the unit, its previous exchange has not been waited for. Its result is outdated, as are
      // those of the units that were exchanged with it, and the optimizer has written to the same memory.
      gathered_[unit].discard(space);
      batch.add(unit, store_.value_memory(unit).size());
    }
    batch.flush();
  }

 protected:
  void complete_values(std::size_t unit) override {
    for (const std::size_t read : store_.table().read_by(unit)) gathered_[read].wait({});
  }
  void leave_values(std::size_t) override {}

  /// This rank's part of the values, unless they are float.
  std::shared_ptr<RoundedCopy> rounded_copy_of(std::size_t unit) const {
    if (store_.precision() == Precision::float32) return nullptr;
    return std::make_shared<RoundedCopy>(RoundedCopy{part_of(store_.value_memory(unit)), store_.precision()});
  }
  /// Float master weights are this rank's part of the values themselves.
  Vector<float> master_of(std::size_t unit) const {
    return store_.precision() == Precision::float32 ? part_of(whole_values<float>(unit)) : new_master(unit);
  }

 private:
  void sync_units(const ExecutionSpace& space, std::span<const std::size_t> units) {
    std::vector<NamedParts> arrays;
    for (const std::size_t unit : units) {
      const Vector<std::byte> values = store_.value_memory(unit), mine = part_of(values);
      RoundedCopy* const rounded = slices_[unit].rounded.get();
      if (rounded != nullptr && !std::exchange(rounded->is_current, false)) {
        round_master_weights(space, slices_[unit].master, store_.precision(), mine);
      }
      arrays.push_back({buffer_of(mine), without_padding(buffer_of(values), store_, unit),
                        fmt::format("values of {}", unit_name(unit))});
    }
    const Event gathered = ranks_.all_gather_coalesced(space, arrays);
    for (const std::size_t unit : units) gathered_[unit] = gathered;
  }

  std::vector<Event> gathered_;  ///< by unit; the same for units that are exchanged together
};

/// Modes replicated and sharded-optimizer: gradients are complete and summed over ranks after the last micro-batch.
class AllReducedStrategy : public WholeValuesStrategy {
 public:
  AllReducedStrategy(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : WholeValuesStrategy(settings, mesh, store), gradients_(settings, mesh, store) {
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) {
      const Vector<float> gradients = store.gradient_memory(unit);
      add_slice(unit, master_of(unit), gradients.extent(0) > 0 ? part_of(gradients) : gradients, rounded_copy_of(unit));
    }
  }

  void begin_step(const ExecutionSpace& space) override { gradients_.begin_step(space); }
  void begin_micro_batch(bool last) override { gradients_.begin_micro_batch(last); }
  void finish_gradients(const ExecutionSpace& space) override { gradients_.finish(space); }

 private:
  void reduce_gradients(std::size_t unit) override { gradients_.ready(unit); }

  AllReducedGradients gradients_;
};

Vector<float> new_gradient(const ParameterStore& store, std::size_t unit, std::size_t shards) {
  return Vector<float>(fmt::format("mylos::gradients::{}", store.table().units()[unit].name),
                       store.gradient_capacity(unit) / shards);
}

/// Mode sharded-gradients: the gradients of each micro-batch are summed into slices.
class ShardedGradientsStrategy final : public WholeValuesStrategy {
 public:
  ShardedGradientsStrategy(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : WholeValuesStrategy(settings, mesh, store) {
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) {
      add_slice(unit, master_of(unit), new_gradient(store, unit, ranks_.size()), rounded_copy_of(unit));
    }
    gradients_.emplace(settings, mesh, store, slices_);
  }

  void begin_step(const ExecutionSpace& space) override { gradients_->begin_step(space); }
  void begin_micro_batch(bool last) override { gradients_->begin_micro_batch(last); }
  void finish_gradients(const ExecutionSpace& space) override { gradients_->finish(space); }

 private:
  void reduce_gradients(std::size_t unit) override { gradients_->reduce(unit); }

  std::optional<ShardedGradients> gradients_;
};

/// Modes sharded and hybrid: values are sharded too, and gathered unit by unit.
class FullyShardedStrategy final : public SlicedStrategy {
 public:
  FullyShardedStrategy(const ModeSettings& settings, Mesh& mesh, ParameterStore& store)
      : SlicedStrategy(settings, mesh, store), values_(ranks_, store, new_master_weights()) {
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

  void sync_parameters(const ExecutionSpace& space, ChangedUnits changed) override {
    values_.invalidate(space, changed);
    values_.prefetch(space);
  }

 private:
  void complete_values(std::size_t unit) override { values_.acquire(space_, unit); }
  void leave_values(std::size_t unit) override { values_.release(unit); }
  void reduce_gradients(std::size_t unit) override { gradients_->reduce(unit); }

  std::vector<Vector<float>> new_master_weights() const {
    std::vector<Vector<float>> master_weights;
    for (std::size_t unit = 0; unit < store_.table().units().size(); ++unit) master_weights.push_back(new_master(unit));
    return master_weights;
  }

  ParameterGatherer values_;
  std::optional<ShardedGradients> gradients_;
  ExecutionSpace space_;
};

/// A group of one. It is a base class so that it is constructed before the strategy.
struct OwnMesh {
  std::unique_ptr<Communicator> self = make_self_communicator();
  Mesh mesh{*self, 1};
};

class SingleProcessStrategy final : private OwnMesh, public AllReducedStrategy {
 public:
  explicit SingleProcessStrategy(ParameterStore& store) : AllReducedStrategy({}, OwnMesh::mesh, store) {}
};

}  // namespace

StoreLayout store_layout(ModeKind kind, std::size_t shards) {
  return {.shards = shards, .owns_values = !shards_values(kind), .owns_gradients = !shards_gradients(kind)};
}

std::unique_ptr<ShardingStrategy> make_sharding_strategy(const ModeSettings& settings, Mesh& mesh,
                                                         ParameterStore& store) {
  if (shards_values(settings.kind)) return std::make_unique<FullyShardedStrategy>(settings, mesh, store);
  if (shards_gradients(settings.kind)) return std::make_unique<ShardedGradientsStrategy>(settings, mesh, store);
  return std::make_unique<AllReducedStrategy>(settings, mesh, store);
}

std::unique_ptr<ShardingStrategy> make_single_process_mode(ParameterStore& store) {
  return std::make_unique<SingleProcessStrategy>(store);
}

}  // namespace mylos::parallel
