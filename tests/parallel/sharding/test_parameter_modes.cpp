#include "core/element_type.hpp"
#include "nn/optimizer.hpp"
#include "parallel/sharding/parameter_mode.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

/// Every mode against sums that are known: run by one, two, three and four ranks.
namespace mylos::parallel {
namespace {

using tests::host_values;
using tests::Values;

constexpr ModeKind kinds[] = {ModeKind::replicated, ModeKind::sharded_optimizer, ModeKind::sharded_gradients,
                              ModeKind::sharded, ModeKind::hybrid};

/// Four units, of which the last reads the first one's rows as well.
ParameterTable make_table() {
  ParameterTable::Builder builder;
  builder.unit("first").row("words", {300, 10}, {}).row("scale", {700}, {}, {.decay = false});
  builder.unit("second").row("weight", {50, 100}, {});
  builder.unit("third").row("bias", {10}, {});
  builder.unit("last").row("out", {2048}, {}).borrow("first");
  return builder.build();
}

/// Small whole numbers, so that every sum is exact in every type.
float gradient_of(std::size_t rank, std::size_t pass, std::size_t unit, std::size_t i) {
  return static_cast<float>((3 * rank + 5 * pass + 2 * unit + i) % 5);
}
float initial(std::size_t row, std::size_t i) { return static_cast<float>((7 * row + i) % 100); }

/// A mode with its store, and what a model would do with it.
class ModeRun {
 public:
  ModeRun(const ModeSettings& settings, Precision precision, std::size_t group = 2)
      : settings_(settings),
        table_(make_table()),
        mesh_(tests::launch().world(), ranks_that_split(settings.kind, group, tests::launch().world().size())),
        store_(table_, precision, ParameterStore::Purpose::training, store_layout(settings.kind, mesh_.shard().size())),
        mode_(make_parameter_mode(settings, mesh_, store_)) {
    for (std::size_t row = 0; row < table_.rows().size(); ++row) {
      std::vector<float> values(table_.row(row).size);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = initial(row, i);
      mode_->write_row(row, values);
    }
    mode_->publish_values(space_);
  }

  /// Each micro-batch adds its gradients, the last unit's pass also to the first one's rows.
  void step(std::size_t index) {
    mode_->begin_step(space_);
    for (std::size_t batch = 0; batch < settings_.micro_batches; ++batch) {
      mode_->begin_micro_batch(batch + 1 == settings_.micro_batches);
      pass(index * settings_.micro_batches + batch);
    }
    mode_->finish_gradients(space_);
  }

  /// What the gradients of a unit are after a step, over all ranks and micro-batches.
  Values expected_gradient(std::size_t unit, std::size_t index) const {
    Values sums(table_.units()[unit].size, 0.0);
    for (std::size_t rank = 0; rank < tests::launch().world().size(); ++rank) {
      for (std::size_t batch = 0; batch < settings_.micro_batches; ++batch) {
        const std::size_t pass = index * settings_.micro_batches + batch;
        const double times = unit == 0 ? 2.0 : 1.0;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += times * gradient_of(rank, pass, unit, i);
      }
    }
    return sums;
  }

  void expect_gradients(std::size_t index) {
    double squares = 0.0;
    for (const ParameterSlice& part : mode_->slices()) {
      const Values all = expected_gradient(part.unit, index);
      for (const double value : all) squares += value * value;
      const std::size_t begin = std::min(part.begin, all.size()), end = std::min(part.end, all.size());
      Values actual = host_values(part.gradient);
      actual.resize(end - begin);
      EXPECT_EQ(actual, Values(all.begin() + static_cast<std::ptrdiff_t>(begin),
                               all.begin() + static_cast<std::ptrdiff_t>(end)))
          << table_.units()[part.unit].name;
    }
    const nn::GradientNorm norm(table_, mode_->slices());
    EXPECT_EQ(mode_->sum_of_blocks(norm.block_sums(space_)), squares);
  }

  /// masters += 1, as an optimizer would.
  void update() {
    for (const ParameterSlice& part : mode_->slices()) {
      const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), part.master);
      for (std::size_t i = 0; i < host.size(); ++i) host(i) += 1.0f;
      Kokkos::deep_copy(part.master, host);
    }
    mode_->publish_values(space_);
  }

  /// Values as a forward pass sees them, and masters as an export reads them.
  void expect_values(float added) {
    for (std::size_t unit = 0; unit < table_.units().size(); ++unit) {
      mode_->schedule().acquire(unit);
      expect_unit(unit, added);
      for (const std::size_t borrowed : table_.units()[unit].borrowed) expect_unit(borrowed, added);
      mode_->schedule().release(unit);
    }
    for (std::size_t row = 0; row < table_.rows().size(); ++row) {
      const std::size_t first = table_.row(row).size / 3;
      std::vector<float> values(table_.row(row).size - first);
      mode_->read_row(row, first, values);
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], initial(row, first + i) + added) << row;
    }
  }

  const ParameterTable& table() const { return table_; }
  ParameterMode& mode() { return *mode_; }

 private:
  void add_gradients(std::size_t unit, std::size_t pass) {
    for (std::size_t row = 0; row < table_.rows().size(); ++row) {
      const ParameterRow& description = table_.row(row);
      if (description.unit != unit) continue;
      const bool whole = store_.begins_gradient(row, 1);
      const Vector<float> gradient = store_.gradient(row);
      const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), gradient);
      for (std::size_t i = 0; i < host.size(); ++i) {
        const float value = gradient_of(tests::launch().world().rank(), pass, unit, description.offset + i);
        host(i) = whole ? value : host(i) + value;
      }
      Kokkos::deep_copy(gradient, host);
    }
  }

  void pass(std::size_t index) {
    UnitSchedule& schedule = mode_->schedule();
    const std::size_t units = table_.units().size();
    for (std::size_t unit = 0; unit < units; ++unit) {
      schedule.acquire(unit);
      if (unit + 1 < units) schedule.release(unit);
    }
    for (std::size_t unit = units; unit-- > 0;) {
      if (unit + 1 < units) schedule.acquire(unit);
      add_gradients(unit, index);
      for (const std::size_t borrowed : table_.units()[unit].borrowed) add_gradients(borrowed, index);
      schedule.release(unit);
      schedule.gradients_ready(unit);
    }
  }

  void expect_unit(std::size_t unit, float added) {
    for (std::size_t row = 0; row < table_.rows().size(); ++row) {
      if (table_.row(row).unit != unit) continue;
      const Values values =
          with_type(store_.precision(), [&]<class T>(T) { return host_values(store_.values<T>(row)); });
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], initial(row, i) + added) << row << " " << i;
    }
  }

  ModeSettings settings_;
  ExecutionSpace space_;
  ParameterTable table_;
  Mesh mesh_;
  ParameterStore store_;
  std::unique_ptr<ParameterMode> mode_;
};

/// Calls check(settings, precision) for every mode that this number of ranks can have.
template <class Check>
void for_each_setting(const Check& check) {
  for (const ModeKind kind : kinds) {
    if (kind == ModeKind::hybrid && tests::launch().world().size() % 2 != 0) continue;
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
      for (const bool bfloat16_gradients : {false, true}) {
        for (const std::size_t micro_batches : {1, 2, 3, 4}) {
          for (const bool tree : {false, true}) {
            if (tree && (micro_batches == 3 || bfloat16_gradients)) continue;
            SCOPED_TRACE(fmt::format("{} {} {} micro-batches, {} exchanged{}", to_string(kind), to_string(precision),
                                     micro_batches, bfloat16_gradients ? "bfloat16" : "float", tree ? ", tree" : ""));
            check(ModeSettings{kind, bfloat16_gradients, tree, micro_batches}, precision);
          }
        }
      }
    }
  }
}

TEST(ParameterModes, GradientsAreSumsOverRanksAndMicroBatches) {
  for_each_setting([](const ModeSettings& settings, Precision precision) {
    ModeRun run(settings, precision);
    for (std::size_t step = 0; step < 3; ++step) {
      run.step(step);
      run.expect_gradients(step);
      run.update();
    }
    run.expect_values(3.0f);
  });
}

TEST(ParameterModes, ValuesAreThoseOfTheMastersEverywhere) {
  for_each_setting([](const ModeSettings& settings, Precision precision) {
    ModeRun run(settings, precision);
    run.expect_values(0.0f);
    run.update();
    run.expect_values(1.0f);
    run.update();
    run.step(0);  // acquires every unit, and looks at none
    run.update();
    run.expect_values(3.0f);
  });
}

TEST(ParameterModes, RanksSaveDisjointRangesThatCoverEveryUnit) {
  for_each_setting([](const ModeSettings& settings, Precision precision) {
    ModeRun run(settings, precision);
    for (std::size_t unit = 0; unit < run.table().units().size(); ++unit) {
      std::vector<int> times(run.table().units()[unit].size);
      for (std::size_t rank = 0; rank < tests::launch().world().size(); ++rank) {
        const UnitRange range = run.mode().saved_range(unit, rank);
        ASSERT_LE(range.begin, range.end);
        ASSERT_LE(range.end, times.size());
        for (std::size_t i = range.begin; i < range.end; ++i) ++times[i];
      }
      for (const int count : times) ASSERT_EQ(count, 1);
      const ParameterSlice& mine = run.mode().slices()[unit];
      const UnitRange range = run.mode().saved_range(unit, tests::launch().world().rank());
      if (range.begin < range.end) {
        EXPECT_GE(range.begin, mine.begin);
        EXPECT_LE(range.end, mine.end);
      }
    }
  });
}

TEST(ParameterModes, MemoryIsWhatTheFormulaSays) {
  for_each_setting([](const ModeSettings& settings, Precision precision) {
    const ParameterTable table = make_table();
    const std::size_t ranks = tests::launch().world().size();
    Mesh mesh(tests::launch().world(), ranks_that_split(settings.kind, 2, ranks));
    const tests::KokkosRecorder recorder;
    ParameterStore store(table, precision, ParameterStore::Purpose::training,
                         store_layout(settings.kind, mesh.shard().size()));
    const auto mode = make_parameter_mode(settings, mesh, store);
    std::size_t taken = 0;
    for (const auto& allocation : recorder.allocations()) taken += allocation.bytes;
    const ModeMemory memory = mode_memory(settings, mesh.shard().size(), table, precision);
    // A View's own record takes 128 bytes.
    EXPECT_NEAR(static_cast<double>(taken), static_cast<double>(memory.values + memory.gradients + memory.exchange),
                256.0 * static_cast<double>(recorder.allocations().size()));
    std::size_t slices = 0;
    for (const ParameterSlice& part : mode->slices()) slices += part.end - part.begin;
    EXPECT_EQ(slices, memory.slices);
  });
}

TEST(ParameterModes, ShardedHoldsItsPartOfAllAndTwoUnits) {
  ParameterTable::Builder builder;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) builder.unit(name).row(name, {8 * slice_block}, {});
  const ParameterTable table = builder.build();
  const std::size_t unit = 8 * slice_block * sizeof(float), all = 6 * unit;
  const ModeMemory memory = mode_memory({.kind = ModeKind::sharded}, 4, table, Precision::float32);
  EXPECT_EQ(memory.values, all / 4 + 2 * unit);
  EXPECT_EQ(memory.gradients, all / 4 + 2 * unit);
  EXPECT_EQ(memory.slices * sizeof(float), all / 4);
  // 16-bit values are rounded when they are gathered.
  EXPECT_EQ(mode_memory({.kind = ModeKind::sharded}, 4, table, Precision::bfloat16).values, all / 4 + unit);
}

TEST(ParameterModes, NamesAreReadBack) {
  for (const ModeKind kind : kinds) EXPECT_EQ(parse_mode(to_string(kind)), kind);
  EXPECT_FALSE(parse_mode("zero").has_value());
}

}  // namespace
}  // namespace mylos::parallel
