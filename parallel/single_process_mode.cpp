#include "core/error.hpp"
#include "core/kernels/activation.hpp"
#include "parallel/parameter_mode.hpp"

#include <fmt/format.h>

#include <vector>

namespace mylos::parallel {
namespace {

/// Nothing to gather and nothing to reduce.
class SingleProcessSchedule final : public UnitSchedule {
 public:
  void acquire(std::size_t) override {}
  void release(std::size_t) override {}
  void gradients_ready(std::size_t) override {}
};

class SingleProcessMode final : public ParameterMode {
 public:
  explicit SingleProcessMode(ParameterStore& store) : store_(store) {
    for (std::size_t unit = 0; unit < store.table().units().size(); ++unit) slices_.push_back(whole_unit(unit));
  }

  std::size_t rank() const override { return 0; }
  std::size_t ranks() const override { return 1; }
  double sum(double value) const override { return value; }
  UnitSchedule& schedule() override { return schedule_; }
  std::span<const ParameterSlice> slices() const override { return slices_; }

  void begin_step(const ExecutionSpace& space) override { store_.begin_gradients(space); }
  void begin_micro_batch(bool) override {}
  void finish_gradients(const ExecutionSpace& space) override { store_.finish_gradients(space); }

  void publish_values(const ExecutionSpace& space) override {
    if (store_.precision() == Precision::float32) return;
    for (const ParameterSlice& slice : slices_) {
      convert<float, bfloat16>(space, slice.master, store_.unit_values<bfloat16>(slice.unit));
    }
  }

  void read_row(std::size_t row, std::size_t first, std::span<float> values) const override {
    const Vector<float> master = master_of(row);
    require(first <= master.size() && values.size() <= master.size() - first,
            fmt::format("row: values {} to {} of {}", first, first + values.size(), master.size()));
    copy(host_view(values), slice(master, first, first + values.size()));
  }
  void write_row(std::size_t row, std::span<const float> values) override { copy(master_of(row), host_view(values)); }

 private:
  ParameterSlice whole_unit(std::size_t unit) {
    const ParameterUnit& description = store_.table().units()[unit];
    const Vector<float> master =
        store_.precision() == Precision::float32
            ? store_.unit_values<float>(unit)
            : uninitialized<float>(fmt::format("mylos::masters::{}", description.name), description.size);
    return {unit, 0, description.size, master, store_.unit_gradients(unit)};
  }

  Vector<float> master_of(std::size_t row) const {
    const ParameterRow& description = store_.table().row(row);
    return slice(slices_[description.unit].master, description.offset, description.offset + description.size);
  }

  template <class T>
  static Kokkos::View<T*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged> host_view(std::span<T> values) {
    return {values.data(), values.size()};
  }

  template <class To, class From>
  static void copy(const To& to, const From& from) {
    require(to.size() == from.size(), fmt::format("row: {} values for {}", from.size(), to.size()));
    Kokkos::deep_copy(to, from);
  }

  ParameterStore& store_;
  SingleProcessSchedule schedule_;
  std::vector<ParameterSlice> slices_;
};

}  // namespace

std::unique_ptr<ParameterMode> make_single_process_mode(ParameterStore& store) {
  return std::make_unique<SingleProcessMode>(store);
}

}  // namespace mylos::parallel
