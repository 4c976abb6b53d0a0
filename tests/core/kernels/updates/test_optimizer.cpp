#include "core/kernels/updates/adamw.hpp"
#include "core/kernels/updates/lion.hpp"
#include "core/kernels/updates/sgd.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/update_control.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr std::size_t sizes[] = {1, 7, 4096, 10007};

AdamWSettings adamw_settings(int step) {
  return {.learning_rate = 1e-2f,
          .epsilon = 1e-6f,
          .weight_decay = 0.1f,
          .bias_correction1 = 1.0 - std::pow(0.9, step),
          .bias_correction2 = 1.0 - std::pow(0.999, step)};
}

TEST(AdamW, FollowsThePaperOverSeveralSteps) {
  for (const std::size_t n : sizes) {
    Values w = random_values(n, 1), m(n, 0.0), v(n, 0.0);
    const auto value = device_vector<float>(w), first = device_vector<float>(m), second = device_vector<float>(v);
    for (int step = 1; step <= 4; ++step) {
      const Values gradient = random_values(n, 10 + static_cast<std::uint64_t>(step));
      const AdamWSettings s = adamw_settings(step);
      adamw_update(ExecutionSpace(), s, update_control(0.5), device_vector<float>(gradient), value, first, second);
      for (std::size_t i = 0; i < n; ++i) {
        const double g = 0.5 * gradient[i];
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        const double ratio = m[i] / s.bias_correction1 / (std::sqrt(v[i] / s.bias_correction2) + 1e-6);
        w[i] -= 1e-2 * (ratio + 0.1 * w[i]);
      }
    }
    expect_near(host_values(value), w, 3e-7, fmt::format("{} values", n));
    expect_near(host_values(first), m, 1e-7, fmt::format("{} first moments", n));
    expect_near(host_values(second), v, 1e-7, fmt::format("{} second moments", n));
  }
}

template <class T>
void expect_rounded(std::size_t n, std::size_t shift) {
  SCOPED_TRACE(fmt::format("{} values from element {} on", n, shift));
  const auto position = [&](std::uint64_t seed) {
    return slice(device_vector<float>(random_values(shift + n, seed)), shift, shift + n);
  };
  // Elements before and after the array stay as they are.
  const Vector<T> memory("test::rounded", shift + n + 1);
  const RoundedValues rounded{memory.data() + shift, precision_of<T>};
  const auto check = [&](const Vector<float>& plain, const Vector<float>& value) {
    EXPECT_TRUE(same_bits(plain, value));
    Values expected(shift + n + 1, 0.0);
    const Values updated = host_values(value);
    for (std::size_t i = 0; i < n; ++i) expected[shift + i] = static_cast<float>(T(static_cast<float>(updated[i])));
    expect_near(host_values(memory), expected, 0.0, "rounded");
  };
  const Vector<float> gradient = position(1), plain = position(2), value = position(2);
  const Vector<UpdateControl> control = update_control();
  adamw_update(ExecutionSpace(), adamw_settings(1), control, gradient, plain, position(3),
               device_vector<float>(Values(n, 0.5)));
  adamw_update(ExecutionSpace(), adamw_settings(1), control, gradient, value, position(3),
               device_vector<float>(Values(n, 0.5)), rounded);
  check(plain, value);
  const SgdSettings settings{.learning_rate = 0.1f, .weight_decay = 0.01f};
  sgd_update(ExecutionSpace(), settings, control, gradient, plain, position(3));
  sgd_update(ExecutionSpace(), settings, control, gradient, value, position(3), rounded);
  check(plain, value);
  const LionSettings lion{.learning_rate = 0.1f, .weight_decay = 0.01f};
  lion_update(ExecutionSpace(), lion, control, gradient, plain, position(3));
  lion_update(ExecutionSpace(), lion, control, gradient, value, position(3), rounded);
  check(plain, value);
}

TEST(RoundedUpdate, ChangesNoBitsAndRoundsTheNewValues) {
  for (const std::size_t n : sizes) {
    for (const std::size_t shift : {0u, 4u, 5u}) {
      expect_rounded<bfloat16>(n, shift);
      expect_rounded<half>(n, shift);
    }
  }
}

TEST(Sgd, FollowsPyTorchOverSeveralSteps) {
  for (const bool nesterov : {false, true}) {
    const SgdSettings s{.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .nesterov = nesterov};
    for (const std::size_t n : sizes) {
      Values w = random_values(n, 1), b(n, 0.0);
      const auto value = device_vector<float>(w), slot = device_vector<float>(b);
      for (std::uint64_t step = 1; step <= 4; ++step) {
        const Values gradient = random_values(n, 10 + step);
        sgd_update(ExecutionSpace(), s, update_control(0.5), device_vector<float>(gradient), value, slot);
        for (std::size_t i = 0; i < n; ++i) {
          const double g = 0.5 * gradient[i] + 0.01 * w[i];
          b[i] = 0.9 * b[i] + g;
          w[i] -= 0.1 * (nesterov ? g + 0.9 * b[i] : b[i]);
        }
      }
      expect_near(host_values(value), w, 5e-7, fmt::format("{} values, Nesterov {}", n, nesterov));
      expect_near(host_values(slot), b, 5e-7, fmt::format("{} momenta, Nesterov {}", n, nesterov));
    }
  }
}

TEST(Lion, FollowsThePaperOverSeveralSteps) {
  const LionSettings s{.learning_rate = 0.1f, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.01f};
  for (const std::size_t n : sizes) {
    Values w = random_values(n, 1), m(n, 0.0);
    const auto value = device_vector<float>(w), slot = device_vector<float>(m);
    for (std::uint64_t step = 1; step <= 4; ++step) {
      Values gradient = random_values(n, 10 + step);
      if (step == 1) gradient[0] = 0.0;  // whose sign is 0
      lion_update(ExecutionSpace(), s, update_control(0.5), device_vector<float>(gradient), value, slot);
      for (std::size_t i = 0; i < n; ++i) {
        const double g = 0.5 * gradient[i], direction = 0.8 * m[i] + 0.2 * g;
        w[i] -= 0.1 * ((direction > 0.0 ? 1.0 : direction < 0.0 ? -1.0 : 0.0) + 0.01 * w[i]);
        m[i] = 0.95 * m[i] + 0.05 * g;
      }
    }
    expect_near(host_values(value), w, 5e-7, fmt::format("{} values", n));
    expect_near(host_values(slot), m, 5e-7, fmt::format("{} moments", n));
  }
}

/// A rank that owns a part computes the same bits as a single rank for the whole.
TEST(AdamW, DoesNotDependOnHowSlicesAreCut) {
  const std::size_t n = 10007;
  const Values gradient = random_values(n, 2), start = random_values(n, 1);
  const auto g = device_vector<float>(gradient);
  const auto whole = device_vector<float>(start), parts = device_vector<float>(start);
  const Vector<float> m("test::m", n), v("test::v", n), part_m("test::part_m", n), part_v("test::part_v", n);
  const ConstVector<float> dg = g;
  adamw_update(ExecutionSpace(), adamw_settings(1), update_control(0.5), dg, whole, m, v);
  for (std::size_t begin = 0; begin < n; begin += 777) {
    const std::size_t end = std::min(n, begin + 777);
    adamw_update(one_thread(), adamw_settings(1), update_control(0.5), slice(dg, begin, end), slice(parts, begin, end),
                 slice(part_m, begin, end), slice(part_v, begin, end));
  }
  EXPECT_TRUE(same_bits(whole, parts));
  EXPECT_TRUE(same_bits(v, part_v));
}

TEST(BlockSquaredSums, AddUpEachBlockInDouble) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, norm_block, norm_block + 1, 3 * norm_block - 5}) {
    const Values x = random_values(n, 4, 3.0);
    const std::size_t blocks = (n + norm_block - 1) / norm_block;
    const Vector<double> sums("test::sums", blocks), again("test::again", blocks);
    Values expected(blocks, 0.0);
    for (std::size_t i = 0; i < n; ++i) expected[i / norm_block] += x[i] * x[i];
    block_squared_sums(ExecutionSpace(), device_vector<float>(x), 0, sums);
    block_squared_sums(one_thread(), device_vector<float>(x), 0, again);
    expect_near(host_values(sums), expected, 1e-13, fmt::format("{} elements", n));
    EXPECT_TRUE(same_bits(sums, again));
  }
}

TEST(BlockSquaredSums, AreTheSameBitsForAUnitCutAtWholeBlocks) {
  const std::size_t n = 3 * norm_block + 77;
  const auto x = device_vector<float>(random_values(n, 4));
  const Vector<double> whole("test::whole", norm_blocks(0, n)), parts("test::parts", norm_blocks(0, n));
  block_squared_sums(ExecutionSpace(), x, 0, whole);
  const std::size_t cuts[] = {0, norm_block, 3 * norm_block, n};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t first = cuts[i] / norm_block;
    const Vector<double> sums = slice(parts, first, first + norm_blocks(cuts[i], cuts[i + 1]));
    block_squared_sums(ExecutionSpace(), slice(x, cuts[i], cuts[i + 1]), cuts[i], sums);
  }
  EXPECT_TRUE(same_bits(whole, parts));
}

TEST(BlockSquaredSums, AreTheSameBitsWhereverTheArrayBegins) {
  const std::size_t n = 2 * norm_block + 77, begin = 5;
  const Values values = random_values(n, 6);
  const Vector<double> expected("test::expected", norm_blocks(begin, begin + n));
  block_squared_sums(ExecutionSpace(), device_vector<float>(values), begin, expected);
  for (const std::size_t shift : {1u, 2u, 4u}) {
    Values padded(shift, 1.0);
    padded.insert(padded.end(), values.begin(), values.end());
    const auto x = device_vector<float>(padded);
    const Vector<double> sums("test::sums", expected.size());
    block_squared_sums(ExecutionSpace(), slice(x, shift, shift + n), begin, sums);
    EXPECT_TRUE(same_bits(sums, expected)) << shift;
  }
}

TEST(BlockSquaredSums, ABlockThatACutSplitsIsTheSumOfItsParts) {
  const std::size_t n = 2 * norm_block, cut = norm_block / 3;
  const Values values = random_values(n, 5);
  const auto x = device_vector<float>(values);
  const Vector<double> sums("test::sums", norm_blocks(cut, n)), nothing("test::nothing", norm_blocks(cut, cut));
  block_squared_sums(ExecutionSpace(), slice(x, cut, n), cut, sums);
  block_squared_sums(ExecutionSpace(), slice(x, cut, cut), cut, nothing);
  Values expected(2, 0.0);
  for (std::size_t i = cut; i < n; ++i) expected[i / norm_block] += values[i] * values[i];
  expect_near(host_values(sums), expected, 1e-9, "cut within a block");
}

/// A host adds in order. Teams add in another order, which is the same in every run.
TEST(SumInOrder, IsTheSumOfTheValuesInOrder) {
  for (const std::size_t n : {0u, 1u, 31u, 4097u, 100000u}) {
    Values values = random_values(n, 3, 2.0);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(std::exp2(20.0 * values[i]));
    double expected = 0.0;
    for (const double value : values) expected += value;
    const auto x = device_vector<double>(values);
    const Vector<double> sum("test::sum", 1), again("test::again", 1);
    sum_in_order(ExecutionSpace(), x, sum);
    sum_in_order(ExecutionSpace(), x, again);
    expect_near(host_values(sum), {expected}, 1e-12, fmt::format("{} values", n));
    if (!kernels_in_teams) {
      EXPECT_EQ(host_values(sum), Values{expected});
    }
    EXPECT_TRUE(same_bits(sum, again));
  }
}

/// Decides in turn on updates of gradients that are multiplied by a loss scale.
struct Decisions {
  UpdateControl decide(const DecisionSettings& settings, double loss_scale, double squares,
                       const Values& losses) const {
    decide_update(ExecutionSpace(), settings, device_vector<float>({loss_scale}), device_vector<double>({squares}),
                  device_vector<double>(losses), control);
    const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), control);
    return host(0);
  }
  Vector<UpdateControl> control = Vector<UpdateControl>("test::control", 1);
};

/// Returns what the device decides for the first gradient.
UpdateControl decision(const DecisionSettings& settings, double squares, const Values& losses,
                       double loss_scale = 1.0) {
  return Decisions().decide(settings, loss_scale, squares, losses);
}

TEST(UpdateDecision, ClipsAsPyTorch) {
  const double norm = std::sqrt(30.0);
  for (const double loss_scale : {1.0, 64.0}) {
    const double squares = 30.0 * loss_scale * loss_scale;
    const auto scale = [&](double clip) {
      return decision({.clip = clip}, squares, {1.0, 2.0}, loss_scale).gradient_scale;
    };
    EXPECT_EQ(scale(2.0), static_cast<float>(2.0 / (norm + 1e-6) / loss_scale));
    EXPECT_EQ(scale(6.0), 1.0 / loss_scale);
    EXPECT_EQ(scale(0.0), 1.0 / loss_scale) << "no clipping";
  }
}

TEST(UpdateDecision, SkipsWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto skips = [](double squares, const Values& losses, double weight = 1.0) {
    return decision({.clip = 1.0, .weight = weight}, squares, losses).skips != 0;
  };
  EXPECT_FALSE(skips(1.0, {1.0, -2.0, 0.0}));
  EXPECT_FALSE(skips(0.0, {}));
  EXPECT_TRUE(skips(infinity, {1.0}));
  EXPECT_TRUE(skips(nan, {1.0}));
  Values many(1000, 3e38);
  EXPECT_FALSE(skips(1.0, many)) << "the sum is beyond float";
  many[999] = infinity;
  EXPECT_TRUE(skips(1.0, many));
  EXPECT_TRUE(skips(1.0, {1.0, nan}));
  EXPECT_TRUE(skips(1.0, {0.0}, 0.0)) << "a batch without labels";
  EXPECT_TRUE(skips(1.0, {1.0}, nan));
}

/// Only a gradient that is not finite, at a loss scale that can be halved, leaves later updates alone.
TEST(UpdateDecision, StopsAllLaterUpdatesUnlessASmallerLossScaleMayHelp) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Values finite = {1.0}, infinite = {infinity};
  struct Case {
    double loss_scale, squares;
    Values losses;
    bool stops;
  };
  for (const Case& c : {Case{2.0, infinity, finite, false}, Case{1.0, infinity, finite, true},
                        Case{2.0, 1.0, infinite, true}, Case{1.0, 1.0, infinite, true}}) {
    SCOPED_TRACE(fmt::format("loss scale {}, squares {}, loss {}", c.loss_scale, c.squares, c.losses[0]));
    const Decisions decisions;
    const UpdateControl first = decisions.decide({}, c.loss_scale, c.squares, c.losses);
    EXPECT_NE(first.skips, 0);
    EXPECT_EQ(first.after_skip, 0);
    EXPECT_EQ(first.stopped != 0, c.stops);
    const UpdateControl second = decisions.decide({}, 1.0, 1.0, finite);
    EXPECT_EQ(second.skips != 0, c.stops);
    EXPECT_NE(second.after_skip, 0);
    const UpdateControl third = decisions.decide({}, 1.0, 1.0, finite);
    EXPECT_EQ(third.skips != 0, c.stops);
    EXPECT_EQ(third.after_skip != 0, c.stops);
  }
}

TEST(UpdateDecision, SelectsTheLossScaleByTheLastUpdate) {
  const Vector<float> loss_scale("test::loss_scale", 1);
  for (const bool skips : {false, true}) {
    select_loss_scale(ExecutionSpace(), {8.0f, 4.0f}, update_control(1.0, skips), loss_scale);
    EXPECT_EQ(host_values(loss_scale), Values{skips ? 4.0 : 8.0});
  }
}

TEST(OptimizerErrors, ShowBothSides) {
  const Vector<float> three("test::three", 3), four("test::four", 4);
  const Vector<double> sums("test::sums", 2);
  EXPECT_THAT(error_of([&] { adamw_update({}, {}, update_control(), three, four, four, four); }),
              HasSubstr("AdamW: 3 gradients for 4 values and 4 elements of state"));
  EXPECT_THAT(error_of([&] { adamw_update({}, {}, update_control(), four, four, four, three); }),
              HasSubstr("AdamW: 4 gradients for 4 values and 3 elements of state"));
  EXPECT_THAT(error_of([&] { sgd_update({}, {}, update_control(), four, four, three); }),
              HasSubstr("SGD: 4 gradients for 4 values and 3 elements of state"));
  EXPECT_THAT(error_of([&] { lion_update({}, {}, update_control(), four, four, three); }),
              HasSubstr("Lion: 4 gradients for 4 values and 3 elements of state"));
  EXPECT_THAT(error_of([&] { sgd_revert({}, {.nesterov = true}, four, four); }),
              HasSubstr("SGD: an update with Nesterov momentum cannot be undone without its gradient"));
  EXPECT_THAT(error_of([&] { block_squared_sums({}, four, 0, sums); }),
              HasSubstr("squared sums of 4 elements: 1 blocks, room for 2"));
  EXPECT_THAT(error_of([&] { sum_in_order({}, sums, sums); }), HasSubstr("sum of 2 values: room for 2 sums"));
  EXPECT_THAT(error_of([&] { select_loss_scale({}, 1.0f, update_control(), three); }),
              HasSubstr("loss scale: 1 controls of an update, room for 3"));
  EXPECT_THAT(error_of([&] { decide_update({}, {}, three, sums, sums, update_control()); }),
              HasSubstr("decision on an update: 3 loss scales, 2 sums of squares, room for 1"));
}

}  // namespace
}  // namespace mylos
