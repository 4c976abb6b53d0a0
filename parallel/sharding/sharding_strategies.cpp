#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/updates/optimizer.hpp"
#include "core/trace.hpp"
#include "parallel/sharding/exact_sum.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/unit_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace mylos::parallel {
namespace {

using HostValues = Kokkos::View<float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;
using ConstHostValues = Kokkos::View<const float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;

/// All modes: a policy of values and one of gradients, with their arrays.
class PolicyStrategy : public ShardingStrategy, private UnitHooks {
 public:
  PolicyStrategy(const StrategySettings& settings, Mesh& mesh, ParameterStore& store)
      : mesh_(mesh),
        ranks_(mesh.shard()),
        store_(store),
        exchanges_{settings, ranks_.size(), mesh.replicate().size(), store.precision(), store.table()},
        value_arrays_(exchanges_, ranks_, store, slices_),
        values_(make_value_policy(exchanges_, value_arrays_, ranks_.least_gather_bytes())),
        acquired_(store.table().units().size()) {
    require(store.layout().shards == ranks_.size(),
            fmt::format("sharding strategy: a store of {} shards for {} ranks", store.layout().shards, ranks_.size()));
    if (settings.tree_sums) exact_sum_.emplace(ranks_);
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) add_slice(unit);
    if (trains()) prepare_gradients();
  }

  UnitHooks& hooks() override { return *this; }
  std::span<const ParameterSlice> slices() const override { return slices_; }
  UnitRange saved_range(std::size_t unit, std::size_t rank) const override;

  void begin_step(const ExecutionSpace& space) override {
    require(trains(), "sharding strategy: a store for inference has no gradients");
    value_arrays_.launch_on(space);
    gradient_arrays_->begin_step(space);
  }
  void begin_micro_batch(bool last) override {
    gradient_arrays_->begin_micro_batch(last);
    gradients_->begin_micro_batch(last);
  }
  void finish_gradients() override;
  void sync_parameters(const ExecutionSpace& space, ChangedUnits changed) override {
    value_arrays_.launch_on(space);
    values_->sync(changed);
  }

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

 private:
  void acquire(std::size_t unit) override {
    {
      const TraceSpan span(TraceLane::waiting, "values of", unit_name(unit));
      values_->acquire(unit);
    }
    acquired_[unit] = Trace::Clock::now();
  }
  void release(std::size_t unit) override {
    if (Trace::is_on()) Trace::add(TraceLane::compute, unit_name(unit), acquired_[unit], Trace::Clock::now());
    values_->release(unit);
  }
  void gradients_ready(std::size_t unit) override {
    gradient_arrays_->end_writing(unit);
    gradients_->ready(unit);
  }

  bool trains() const { return store_.purpose() == ParameterStore::Purpose::training; }
  const std::string& unit_name(std::size_t unit) const { return store_.table().units()[unit].name; }
  /// Returns this rank's part of a unit's memory.
  template <class T>
  Vector<T> part_of(const Vector<T>& unit) const {
    const std::size_t part = unit.size() / ranks_.size();
    return slice(unit, ranks_.rank() * part, (ranks_.rank() + 1) * part);
  }
  Vector<float> master_of(std::size_t unit) const;
  Vector<float> gradient_of(std::size_t unit) const;
  std::shared_ptr<RoundedCopy> rounded_copy_of(std::size_t unit) const;
  void add_slice(std::size_t unit) {
    const std::size_t size = exchanges_.slice_size(unit), begin = ranks_.rank() * size;
    slices_.push_back({unit, begin, begin + size, master_of(unit), gradient_of(unit), rounded_copy_of(unit)});
  }
  void prepare_gradients();

  /// Calls `use(owner, piece, first)` for each piece of a tensor's values that belongs to one rank of ranks_. `first`
  /// is the index of the piece in the unit.
  template <class Use>
  void for_each_owner(std::size_t tensor, std::size_t first, std::span<float> values, const Use& use) const;
  /// Copies master weights, from element `first` of the unit on, from this rank's slice to `piece`. The values of a
  /// unit without them are widened.
  void copy_master_weights(const ParameterSlice& mine, std::size_t first, std::span<float> piece) const;

  /// Returns elements [begin, end) of a slice without master weights. T has its precision, or is std::byte.
  template <class T>
  Vector<T> rounded_part(const ParameterSlice& mine, std::size_t begin, std::size_t end) const {
    const std::size_t element = bytes_of(store_.precision());
    return Vector<T>(reinterpret_cast<T*>(mine.rounded->values.data() + begin * element),
                     (end - begin) * element / sizeof(T));
  }

  Mesh& mesh_;
  Communicator& ranks_;  ///< the ranks among which units are split
  ParameterStore& store_;
  UnitExchanges exchanges_;
  std::vector<ParameterSlice> slices_;
  ValueArrays value_arrays_;
  std::unique_ptr<ValuePolicy> values_;
  std::optional<GradientArrays> gradient_arrays_;  ///< set for training
  std::unique_ptr<GradientPolicy> gradients_;
  std::optional<ExactSum> exact_sum_;               ///< set if sums of blocks are exact
  std::vector<Trace::Clock::time_point> acquired_;  ///< time of each unit's last acquisition
};

/// Float master weights of whole values are this rank's part of the values themselves.
Vector<float> PolicyStrategy::master_of(std::size_t unit) const {
  if (!exchanges_.has_master(unit)) return {};
  if (store_.layout().owns_values && store_.precision() == Precision::float32) {
    return part_of(Vector<float>(reinterpret_cast<float*>(store_.value_memory(unit).data()), store_.capacity(unit)));
  }
  return Vector<float>(fmt::format("mylos::master_weights::{}", unit_name(unit)), exchanges_.slice_size(unit));
}

Vector<float> PolicyStrategy::gradient_of(std::size_t unit) const {
  if (!trains()) return {};
  if (!store_.layout().owns_gradients) {
    return Vector<float>(fmt::format("mylos::gradients::{}", unit_name(unit)),
                         store_.gradient_capacity(unit) / ranks_.size());
  }
  const Vector<float> gradients = store_.gradient_memory(unit);
  return gradients.extent(0) > 0 ? part_of(gradients) : gradients;
}

/// Returns this rank's part of whole values, unless they are float; memory of its own for its part of values that are
/// split and have no master weights.
std::shared_ptr<RoundedCopy> PolicyStrategy::rounded_copy_of(std::size_t unit) const {
  const Precision precision = store_.precision();
  if (precision == Precision::float32 || (!store_.layout().owns_values && exchanges_.has_master(unit))) return nullptr;
  const std::size_t bytes = exchanges_.slice_size(unit) * bytes_of(precision);
  const Vector<std::byte> values = store_.layout().owns_values
                                       ? part_of(store_.value_memory(unit))
                                       : Vector<std::byte>("mylos::frozen_slice::" + unit_name(unit), bytes);
  return std::make_shared<RoundedCopy>(RoundedCopy{values, precision});
}

void PolicyStrategy::copy_master_weights(const ParameterSlice& mine, std::size_t first, std::span<float> piece) const {
  const std::size_t begin = first - mine.begin, end = begin + piece.size();
  if (exchanges_.has_master(mine.unit)) {
    return Kokkos::deep_copy(HostValues(piece.data(), piece.size()), slice(mine.master, begin, end));
  }
  with_type(store_.precision(), [&]<class T>(T) {
    Kokkos::View<T*, Kokkos::LayoutRight, HostSpace> narrow("mylos::frozen_piece", piece.size());
    Kokkos::deep_copy(narrow, rounded_part<T>(mine, begin, end));
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<float>(narrow(i));
  });
}

void PolicyStrategy::prepare_gradients() {
  gradient_arrays_.emplace(exchanges_, mesh_, store_, slices_);
  const CollectiveCall slice = exchanges_.sum_slice(0);
  gradients_ =
      make_gradient_policy(exchanges_, *gradient_arrays_,
                           {.gradients = group_of(mesh_, exchanges_.sum(0)).least_sum_bytes(ElementType::float32),
                            .slices = group_of(mesh_, slice).least_sum_bytes(slice.type)});
  if (store_.layout().owns_gradients) return;
  store_.set_gradient_source([this](std::size_t unit) {
    return gradient_arrays_->memory({unit, gradients_->take(unit)});
  });
}

void PolicyStrategy::finish_gradients() {
  if (shards_gradients(exchanges_.settings.kind)) return gradients_->finish();
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients");
  gradients_->finish();
}

UnitRange PolicyStrategy::saved_range(std::size_t unit, std::size_t rank) const {
  const std::size_t size = store_.table().units()[unit].size, shards = ranks_.size();
  const std::size_t copies = mesh_.world().size() / shards, copy = rank / shards;
  const std::size_t part = shard_size(size, shards), begin = rank % shards * part;
  // The ranks that hold the same slice each write a part of it.
  const std::size_t share = shard_size(part, copies);
  const auto bounded = [&](std::size_t at) { return std::min({begin + std::min(at, part), size}); };
  return {bounded(copy * share), bounded((copy + 1) * share)};
}

void PolicyStrategy::sum_of_blocks(const ExecutionSpace& space, const ConstVector<double>& values,
                                   const Vector<double>& sum) {
  const std::string what = "norm of the gradients";
  if (exact_sum_) return (*exact_sum_)(space, values, sum, what);
  sum_in_order(space, values, sum);
  ranks_.all_reduce(space, {sum.data(), sum.size(), ElementType::float64}, what).wait(space);
}

void PolicyStrategy::join_values(const ExecutionSpace& space, const Vector<double>& values, const std::string& what) {
  const Buffer data{values.data(), values.size(), ElementType::float64};
  ranks_.all_reduce(space, data, what).wait(space);
  mesh_.replicate().all_reduce(space, data, what).wait(space);
}

template <class Use>
void PolicyStrategy::for_each_owner(std::size_t tensor, std::size_t first, std::span<float> values,
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

void PolicyStrategy::read_tensor(std::size_t tensor, std::size_t first, std::span<float> values) {
  const ParameterSlice& mine = slices_[store_.table().tensor(tensor).unit];
  for_each_owner(tensor, first, values, [&](std::size_t owner, std::span<float> piece, std::size_t at) {
    if (owner == ranks_.rank()) copy_master_weights(mine, at, piece);
    ranks_.broadcast({}, {piece.data(), piece.size(), ElementType::float32, MemoryKind::host}, owner, "tensors")
        .wait({});
  });
}

void PolicyStrategy::gather_tensor(std::size_t tensor, std::size_t first, std::span<float> values, std::size_t root) {
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

TensorRange PolicyStrategy::owned_range(std::size_t tensor) const {
  const ParameterTensor& description = store_.table().tensor(tensor);
  const ParameterSlice& mine = slices_[description.unit];
  const auto bounded = [&](std::size_t at) {
    return std::clamp(at, description.offset, description.offset + description.size) - description.offset;
  };
  return {bounded(mine.begin), bounded(mine.end)};
}

void PolicyStrategy::copy_tensor(std::size_t tensor, std::size_t first, std::size_t count, std::size_t from) {
  const ParameterTensor& description = store_.table().tensor(tensor);
  const TensorRange owned = owned_range(tensor);
  require(owned.begin <= first && first + count <= owned.end,
          fmt::format("copy of {}: elements {} to {}, of which this rank has {} to {}", description.name, first,
                      first + count, owned.begin, owned.end));
  const ParameterSlice& mine = slices_[description.unit];
  const std::size_t begin = description.offset + first - mine.begin;
  const ExecutionSpace space;
  if (exchanges_.has_master(mine.unit)) {
    return copies().broadcast(space, buffer_of(slice(mine.master, begin, begin + count)), from, "tensors").wait(space);
  }
  const Vector<std::byte> values = rounded_part<std::byte>(mine, begin, begin + count);
  copies().broadcast(space, {values.data(), values.size(), ElementType::byte}, from, "tensors").wait(space);
}

void PolicyStrategy::write_tensor(std::size_t tensor, std::size_t first, std::span<const float> values) {
  const ParameterTensor& description = store_.table().tensor(tensor);
  check_range(description, first, values.size());
  const TensorRange owned = owned_range(tensor);
  const std::size_t begin = std::max(first, owned.begin), end = std::min(first + values.size(), owned.end);
  if (begin >= end) return;
  const ParameterSlice& mine = slices_[description.unit];
  const ConstHostValues source(values.data() + (begin - first), end - begin);
  const std::size_t target = description.offset + begin - mine.begin;
  if (!exchanges_.has_master(mine.unit)) {
    return with_type(store_.precision(), [&]<class T>(T) {
      Kokkos::View<T*, Kokkos::LayoutRight, HostSpace> narrow("mylos::frozen_piece", source.size());
      for (std::size_t i = 0; i < source.size(); ++i) narrow(i) = T(source(i));
      Kokkos::deep_copy(rounded_part<T>(mine, target, target + source.size()), narrow);
    });
  }
  Kokkos::deep_copy(slice(mine.master, target, target + source.size()), source);
  if (mine.rounded != nullptr) mine.rounded->is_current = false;
}

/// A group of one. It is a base class so that it is constructed before the strategy.
struct OwnMesh {
  std::unique_ptr<Communicator> self = make_self_communicator();
  Mesh mesh{*self, 1};
};

class SingleProcessStrategy final : private OwnMesh, public PolicyStrategy {
 public:
  explicit SingleProcessStrategy(ParameterStore& store) : PolicyStrategy({}, OwnMesh::mesh, store) {}
};

}  // namespace

StoreLayout store_layout(StrategyKind kind, std::size_t shards) {
  return {.shards = shards, .owns_values = !shards_values(kind), .owns_gradients = !shards_gradients(kind)};
}

std::unique_ptr<ShardingStrategy> make_sharding_strategy(const StrategySettings& settings, Mesh& mesh,
                                                         ParameterStore& store) {
  return std::make_unique<PolicyStrategy>(settings, mesh, store);
}

std::unique_ptr<ShardingStrategy> make_single_process_strategy(ParameterStore& store) {
  return std::make_unique<SingleProcessStrategy>(store);
}

}  // namespace mylos::parallel
