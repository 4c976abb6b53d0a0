#include "nn/optimizer.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/update_control.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

namespace mylos::nn {
namespace {

using namespace tests;

constexpr std::size_t steps = 6;

/// Returns two units. The first has all kinds of groups; what is frozen stays there because of its stack.
ParameterTable two_units() {
  ParameterTable::Builder builder;
  builder.unit("first");
  builder.tensor("decayed", {5, 7}, {});
  builder.tensor("bias", {7}, {}, {.decay = false});
  builder.stack(true).tensor("slow", {11}, {}, {.learning_rate_factor = 0.25f});
  builder.tensor("frozen", {13}, {}, {.trainable = false}).stack(false);
  builder.unit("second");
  builder.tensor("more", {norm_block + 3}, {}, {.decay = false});
  return builder.build();
}

/// The units of the table, each divided in the middle of a tensor.
struct Slices {
  explicit Slices(const ParameterTable& table, bool cut) {
    for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
      const std::size_t size = table.units()[unit].size;
      master_weights.push_back(device_vector<float>(random_values(size, 1 + unit)));
      gradients.push_back(Vector<float>("test::gradient", size));
      const std::vector<std::size_t> bounds =
          cut ? std::vector<std::size_t>{0, 3, size / 2, size} : std::vector<std::size_t>{0, size};
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        slices.push_back({unit, bounds[i], bounds[i + 1], slice(master_weights[unit], bounds[i], bounds[i + 1]),
                          slice(gradients[unit], bounds[i], bounds[i + 1])});
      }
    }
  }
  void set_gradients(std::size_t step) {
    for (std::size_t unit = 0; unit < gradients.size(); ++unit) {
      const Values values = random_values(gradients[unit].size(), 50 + 10 * step + unit);
      Kokkos::deep_copy(gradients[unit], device_vector<float>(values));
    }
  }
  std::vector<Vector<float>> master_weights, gradients;
  std::vector<ParameterSlice> slices;
};

UpdateSettings settings_of(std::size_t step) {
  return {.step = step, .learning_rate = 0.01f / static_cast<float>(step + 1)};
}

/// Computes one element's history under an update rule, in double: rule(value, gradient, slots, step).
template <class Rule>
Values history(const ParameterTable& table, std::size_t row, const Rule& rule) {
  const ParameterTensor& description = table.tensor(row);
  Values unit = random_values(table.units()[description.unit].size, 1 + description.unit);
  Values result;
  for (std::size_t i = description.offset; i < description.offset + description.size; ++i) {
    double value = unit[i], slots[2] = {0.0, 0.0};
    for (std::size_t step = 0; step < steps; ++step) {
      const Values gradients = random_values(unit.size(), 50 + 10 * step + description.unit);
      if (description.group.trainable) rule(value, 0.5 * gradients[i], slots, step);
    }
    result.push_back(value);
  }
  return result;
}

template <class Make, class Rule>
void expect_history(const Make& make, const Rule& rule, bool decay_all = false) {
  const ParameterTable table = two_units();
  for (const bool cut : {false, true}) {
    Slices slices(table, cut);
    const auto optimizer = make(table, slices.slices);
    for (std::size_t step = 0; step < steps; ++step) {
      slices.set_gradients(step);
      optimizer->update(ExecutionSpace(), settings_of(step), update_control(0.5));
    }
    for (const char* name : {"decayed", "bias", "slow", "frozen"}) {
      const std::size_t row = table.find(name);
      const ParameterTensor& position = table.tensor(row);
      const auto rule_of_row = [&](double& value, double gradient, double* slots, std::size_t step) {
        const double rate =
            0.01 / static_cast<double>(step + 1) * static_cast<double>(position.group.learning_rate_factor);
        rule(value, gradient, slots, step, rate, decay_all || position.group.decay ? 0.1 : 0.0);
      };
      const Values actual =
          host_values(slice(slices.master_weights[position.unit], position.offset, position.offset + position.size));
      expect_near(actual, history(table, row, rule_of_row), 2e-6, name);
    }
  }
}

TEST(Optimizer, AdamWIsItsFormula) {
  for (const bool decay_all : {false, true}) {
    const AdamWConfig config{.beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1, .decay_all = decay_all};
    const auto make = [&](const ParameterTable& table, std::span<const ParameterSlice> slices) {
      return make_adamw(config, table, slices);
    };
    const auto rule = [&](double& value, double gradient, double* slots, std::size_t step, double rate, double decay) {
      slots[0] = config.beta1 * slots[0] + (1.0 - config.beta1) * gradient;
      slots[1] = config.beta2 * slots[1] + (1.0 - config.beta2) * gradient * gradient;
      const double n = static_cast<double>(step + 1);
      const double m = slots[0] / (1.0 - std::pow(config.beta1, n)), v = slots[1] / (1.0 - std::pow(config.beta2, n));
      value -= rate * decay * value;
      value -= rate * m / (std::sqrt(v) + config.epsilon);
    };
    expect_history(make, rule, decay_all);
  }
}

/// SGD with and without Nesterov momentum, with decay of all tensors or of those whose group decays.
TEST(Optimizer, SgdIsItsFormula) {
  for (const bool nesterov : {false, true}) {
    for (const bool decay_all : {false, true}) {
      const SgdConfig config{.momentum = 0.7, .weight_decay = 0.1, .nesterov = nesterov, .decay_all = decay_all};
      const auto make = [&](const ParameterTable& table, std::span<const ParameterSlice> slices) {
        return make_sgd(config, table, slices);
      };
      const auto rule = [&](double& value, double gradient, double* slots, std::size_t, double rate, double decay) {
        const double decayed = gradient + decay * value;
        slots[0] = config.momentum * slots[0] + decayed;
        value -= rate * (nesterov ? decayed + config.momentum * slots[0] : slots[0]);
      };
      expect_history(make, rule, decay_all);
    }
  }
}

/// Slices keep the copies of frozen tensors.
TEST(Optimizer, UpdatesWriteRoundedCopies) {
  const ParameterTable table = two_units();
  const auto makers = {std::function([](const ParameterTable& units, std::span<const ParameterSlice> slices) {
                         return make_adamw({}, units, slices);
                       }),
                       std::function([](const ParameterTable& units, std::span<const ParameterSlice> slices) {
                         return make_sgd({}, units, slices);
                       })};
  for (const auto& make : makers) {
    Slices slices(table, true);
    for (ParameterSlice& part : slices.slices) {
      const Vector<std::byte> values("test::rounded", 2 * part.master.size());
      part.rounded = std::make_shared<RoundedCopy>(RoundedCopy{values, Precision::bfloat16});
    }
    slices.set_gradients(0);
    make(table, slices.slices)->update(ExecutionSpace(), settings_of(0), update_control());
    const ParameterTensor& frozen = table.tensor(table.find("frozen"));
    for (const ParameterSlice& part : slices.slices) {
      EXPECT_TRUE(part.rounded->is_current);
      Values expected = host_values(part.master);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::size_t at = part.begin + i;
        const bool is_frozen = part.unit == frozen.unit && at >= frozen.offset && at < frozen.offset + frozen.size;
        expected[i] = is_frozen ? 0.0 : static_cast<float>(bfloat16(static_cast<float>(expected[i])));
      }
      const Vector<bfloat16> rounded(reinterpret_cast<bfloat16*>(part.rounded->values.data()), part.master.size());
      expect_near(host_values(rounded), expected, 0.0, fmt::format("unit {} from {}", part.unit, part.begin));
    }
  }
}

/// Returns the master weights before and after an update that is undone.
template <class Make>
void expect_reverted(const Make& make) {
  const ParameterTable table = two_units();
  Slices slices(table, true);
  const auto optimizer = make(table, slices.slices);
  for (std::size_t step = 0; step < steps; ++step) {
    slices.set_gradients(step);
    std::vector<Values> before;
    for (const Vector<float>& master : slices.master_weights) before.push_back(host_values(master));
    optimizer->update(ExecutionSpace(), settings_of(step), update_control(0.5));
    if (step + 1 < steps) continue;
    EXPECT_TRUE(optimizer->revert(ExecutionSpace(), {.step = step, .learning_rate = settings_of(step).learning_rate}));
    for (std::size_t i = 0; i < before.size(); ++i) {
      expect_near(host_values(slices.master_weights[i]), before[i], 2e-7, fmt::format("unit {}", i));
    }
  }
}

TEST(Optimizer, RevertTakesTheLastUpdateBack) {
  expect_reverted([](const ParameterTable& table, std::span<const ParameterSlice> slices) {
    return make_adamw({.weight_decay = 0.1}, table, slices);
  });
  expect_reverted([](const ParameterTable& table, std::span<const ParameterSlice> slices) {
    return make_sgd({.momentum = 0.7, .weight_decay = 0.1}, table, slices);
  });
}

TEST(Optimizer, RevertLeavesANesterovUpdateAsItIs) {
  const ParameterTable table = two_units();
  Slices slices(table, true);
  const auto optimizer = make_sgd({.momentum = 0.7, .nesterov = true}, table, slices.slices);
  slices.set_gradients(0);
  optimizer->update(ExecutionSpace(), settings_of(0), update_control(0.5));
  const Values updated = host_values(slices.master_weights[0]);
  EXPECT_FALSE(optimizer->revert(ExecutionSpace(), {.step = 0, .learning_rate = settings_of(0).learning_rate}));
  EXPECT_EQ(host_values(slices.master_weights[0]), updated);
}

TEST(Optimizer, AnUpdateThatIsSkippedChangesNothing) {
  const ParameterTable table = two_units();
  for (const bool is_adamw : {false, true}) {
    Slices slices(table, true);
    const auto optimizer =
        is_adamw ? make_adamw({.weight_decay = 0.1}, table, slices.slices) : make_sgd({}, table, slices.slices);
    slices.set_gradients(0);
    optimizer->update(ExecutionSpace(), settings_of(0), update_control(0.5));
    const auto state = [&] {
      std::vector<Values> all;
      for (const Vector<float>& master : slices.master_weights) all.push_back(host_values(master));
      for (std::size_t slot = 0; slot < optimizer->slot_names().size(); ++slot) {
        for (std::size_t i = 0; i < slices.slices.size(); ++i) all.push_back(host_values(optimizer->slot(slot, i)));
      }
      return all;
    };
    const std::vector<Values> before = state();
    optimizer->update(ExecutionSpace(), settings_of(1), update_control(0.5, true));
    EXPECT_EQ(state(), before);
    optimizer->update(ExecutionSpace(), settings_of(1), update_control(0.5));
    EXPECT_NE(state(), before);
  }
}

/// After a skipped update, the count of updates, the rate and AdamW's bias corrections are those of the update before.
TEST(Optimizer, SettingsFollowTheUpdateBefore) {
  const ParameterTable table = two_units();
  for (const bool is_adamw : {false, true}) {
    const auto updated = [&](const Candidates<UpdateSettings>& settings, bool is_after_skip) {
      Slices slices(table, true);
      const auto optimizer =
          is_adamw ? make_adamw({.weight_decay = 0.1}, table, slices.slices) : make_sgd({}, table, slices.slices);
      slices.set_gradients(0);
      optimizer->update(ExecutionSpace(), settings, update_control(0.5, false, is_after_skip));
      std::vector<Values> all;
      for (const Vector<float>& master : slices.master_weights) all.push_back(host_values(master));
      return all;
    };
    const UpdateSettings sixth = settings_of(5), seventh = settings_of(6);
    EXPECT_EQ(updated({seventh, sixth}, false), updated(seventh, false));
    EXPECT_EQ(updated({seventh, sixth}, true), updated(sixth, false));
    EXPECT_NE(updated(seventh, false), updated(sixth, false));
  }
}

TEST(Optimizer, SlotsAreNamedAndStandAsTheirSlices) {
  const ParameterTable table = two_units();
  Slices slices(table, true);
  const auto adamw = make_adamw({}, table, slices.slices);
  const auto sgd = make_sgd({}, table, slices.slices);
  EXPECT_EQ(adamw->slot_names(), (std::vector<std::string>{"m", "v"}));
  EXPECT_EQ(sgd->slot_names(), (std::vector<std::string>{"momentum"}));
  slices.set_gradients(0);
  sgd->update(ExecutionSpace(), settings_of(0), update_control(0.5));
  for (std::size_t i = 0; i < slices.slices.size(); ++i) {
    EXPECT_EQ(adamw->slot(1, i).size(), slices.slices[i].end - slices.slices[i].begin);
  }
  // Without decay or earlier steps, the momentum is the scaled gradient.
  Values expected = host_values(slices.slices.back().gradient);
  for (double& value : expected) value *= 0.5;
  expect_near(host_values(sgd->slot(0, slices.slices.size() - 1)), expected, 1e-7, "momentum");
}

TEST(Optimizer, GradientNormIsTheSumOfSquaresOfTrainableRows) {
  const ParameterTable table = two_units();
  for (const bool cut : {false, true}) {
    Slices slices(table, cut);
    slices.set_gradients(0);
    double expected = 0.0;
    for (const ParameterTensor& row : table.tensors()) {
      const Values unit = host_values(slices.gradients[row.unit]);
      for (std::size_t i = row.offset; i < row.offset + row.size; ++i) {
        expected += row.group.trainable ? unit[i] * unit[i] : 0.0;
      }
    }
    const GradientNorm norm(table, slices.slices);
    const auto squared = [&] {
      const Values sums = host_values(norm.block_sums(ExecutionSpace()));
      return std::accumulate(sums.begin(), sums.end(), 0.0);
    };
    EXPECT_NEAR(squared(), expected, 1e-12 * expected);
    EXPECT_EQ(squared(), squared());
  }
}

}  // namespace
}  // namespace mylos::nn
