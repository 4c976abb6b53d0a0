#include "parallel/sharding/gradient_policy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

/// What policies of gradients decide, without ranks and arrays.
namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

/// Lists decisions: "sum 2,1 in 2".
class ListedWork final : public GradientWork {
 public:
  void sum(std::span<const std::size_t> units, std::size_t place) override {
    acts_.push_back(fmt::format("sum {} in {}", fmt::join(units, ","), place));
  }
  void finish_sum(std::size_t place) override { acts_.push_back(fmt::format("finish {}", place)); }
  void sum_slices(std::span<const PlacedUnit> units) override {
    std::vector<std::size_t> list;
    for (const PlacedUnit& placed : units) list.push_back(placed.unit);
    acts_.push_back(fmt::format("slices {}", fmt::join(list, ",")));
  }
  void finish_slices(std::span<const std::size_t> units) override {
    acts_.push_back(fmt::format("finish slices {}", fmt::join(units, ",")));
  }

  /// Returns the decisions since the last call.
  Texts take() { return std::exchange(acts_, {}); }

 private:
  Texts acts_;
};

/// Four units of 1000 elements on 2 x 2 ranks.
class GradientPolicies : public ::testing::Test {
 protected:
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  static ParameterTable four_units() {
    ParameterTable::Builder builder;
    for (const char* const name : {"a", "b", "c", "d"}) builder.unit(name).tensor(name, {1000}, {});
    return builder.build();
  }
  void make(const StrategySettings& settings, LeastSums least) {
    exchanges_.settings = settings;
    policy_ = make_gradient_policy(exchanges_, work_, least);
  }
  /// Passes over the units backward, and returns what was decided before the sums of the step were asked for.
  Texts pass(bool last) {
    policy_->begin_micro_batch(last);
    for (std::size_t unit = 4; unit-- > 0;) {
      policy_->take(unit);
      policy_->ready(unit);
    }
    return work_.take();
  }
  Texts finish() {
    policy_->finish();
    return work_.take();
  }

  ParameterTable table_ = four_units();
  UnitExchanges exchanges_{.settings = {}, .shards = 2, .replicas = 2, .table = table_};
  ListedWork work_;
  std::unique_ptr<GradientPolicy> policy_;
};

TEST_F(GradientPolicies, WholeOnesAreSummedAfterTheLastMicroBatch) {
  make({.kind = StrategyKind::replicated}, {});
  EXPECT_THAT(pass(false), IsEmpty());
  EXPECT_THAT(pass(true), ElementsAre("sum 3 in 3", "sum 2 in 2", "sum 1 in 1", "sum 0 in 0"));
  EXPECT_THAT(finish(), ElementsAre("finish 3", "finish 2", "finish 1", "finish 0"));
}

/// Units wait for others until they are long enough, or until the pass ends.
TEST_F(GradientPolicies, SmallWholeOnesAreSummedTogether) {
  make({.kind = StrategyKind::replicated}, {.gradients = all});
  EXPECT_THAT(pass(true), ElementsAre("sum 3,2,1,0 in 3"));
  EXPECT_THAT(finish(), ElementsAre("finish 3"));
  make({.kind = StrategyKind::replicated}, {.gradients = 2 * exchanges_.gradient_bytes(0)});
  EXPECT_THAT(pass(true), ElementsAre("sum 3,2 in 3", "sum 1,0 in 1"));
}

/// In bfloat16 a unit is sent from one of two places, and waits for the sum before it there.
TEST_F(GradientPolicies, RoundedWholeOnesTakeTwoPlacesInTurn) {
  make({.kind = StrategyKind::replicated, .bfloat16_gradients = true}, {.gradients = all});
  EXPECT_THAT(pass(true), ElementsAre("sum 3 in 0", "sum 2 in 1", "finish 0", "sum 1 in 0", "finish 1", "sum 0 in 1"));
  EXPECT_THAT(finish(), ElementsAre("finish 0", "finish 1"));
}

/// A sum runs while the next unit is written. Slices are summed over groups once a step.
TEST_F(GradientPolicies, SlicesAreSummedWhileTheNextUnitIsWritten) {
  make({.kind = StrategyKind::hybrid}, {});
  EXPECT_THAT(pass(false), ElementsAre("sum 3 in 0", "sum 2 in 1", "finish 0", "sum 1 in 0", "finish 1", "sum 0 in 1"));
  EXPECT_THAT(pass(true), ElementsAre("finish 0", "sum 3 in 0", "finish 1", "sum 2 in 1", "finish 0", "slices 3",
                                      "sum 1 in 0", "finish 1", "slices 2", "sum 0 in 1", "finish 0", "slices 1"));
  EXPECT_THAT(finish(), ElementsAre("finish 1", "slices 0", "finish slices 0,1,2,3"));
}

TEST_F(GradientPolicies, SmallSlicesAreSummedTogether) {
  make({.kind = StrategyKind::hybrid}, {.slices = all});
  pass(true);
  EXPECT_THAT(finish(), ElementsAre("finish 1", "slices 3,2,1,0", "finish slices 0,1,2,3"));
}

/// A rounded slice is sent from the memory of its unit, which the next unit needs.
TEST_F(GradientPolicies, RoundedSlicesEndBeforeTheirPlaceIsTaken) {
  make({.kind = StrategyKind::hybrid, .bfloat16_gradients = true}, {.slices = all});
  const Texts acts = pass(true);
  const auto at = [&](const char* act) { return std::ranges::find(acts, act) - acts.begin(); };
  EXPECT_LT(at("slices 3"), at("finish slices 3"));
  EXPECT_LT(at("finish slices 3"), at("sum 1 in 0"));
}

}  // namespace
}  // namespace mylos::parallel
