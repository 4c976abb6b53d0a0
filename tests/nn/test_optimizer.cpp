#include "nn/optimizer.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/update_control.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace mylos::nn {
namespace {

using namespace tests;
using ::testing::HasSubstr;

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

/// Compares with `rule` the weights of a slice and of one that is cut, with decay of all tensors and of those whose
/// group decays.
template <class Rule>
void expect_history(OptimizerConfig config, const Rule& rule) {
  const ParameterTable table = two_units();
  config.weight_decay = 0.1;
  for (const bool cut : {false, true}) {
    for (const bool decay_all : {false, true}) {
      config.decay_all = decay_all;
      Slices slices(table, cut);
      const auto optimizer = make_optimizer(config, table, slices.slices);
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
}

TEST(Optimizer, AdamWIsItsFormula) {
  constexpr double beta1 = 0.8, beta2 = 0.99, epsilon = 1e-6;
  const auto rule = [&](double& value, double gradient, double* slots, std::size_t step, double rate, double decay) {
    slots[0] = beta1 * slots[0] + (1.0 - beta1) * gradient;
    slots[1] = beta2 * slots[1] + (1.0 - beta2) * gradient * gradient;
    const double n = static_cast<double>(step + 1);
    const double m = slots[0] / (1.0 - std::pow(beta1, n)), v = slots[1] / (1.0 - std::pow(beta2, n));
    value -= rate * decay * value;
    value -= rate * m / (std::sqrt(v) + epsilon);
  };
  expect_history(
      {.name = "adamw", .settings = {{"adam-beta1", beta1}, {"adam-beta2", beta2}, {"adam-epsilon", epsilon}}}, rule);
}

/// With and without Nesterov momentum.
TEST(Optimizer, SgdIsItsFormula) {
  constexpr double momentum = 0.7;
  for (const bool nesterov : {false, true}) {
    const auto rule = [&](double& value, double gradient, double* slots, std::size_t, double rate, double decay) {
      const double decayed = gradient + decay * value;
      slots[0] = momentum * slots[0] + decayed;
      value -= rate * (nesterov ? decayed + momentum * slots[0] : slots[0]);
    };
    expect_history({.name = "sgd", .settings = {{"momentum", momentum}, {"nesterov", nesterov ? 1.0 : 0.0}}}, rule);
  }
}

TEST(Optimizer, LionIsItsFormula) {
  constexpr double beta1 = 0.8, beta2 = 0.95;
  const auto rule = [&](double& value, double gradient, double* slots, std::size_t, double rate, double decay) {
    const double direction = beta1 * slots[0] + (1.0 - beta1) * gradient;
    slots[0] = beta2 * slots[0] + (1.0 - beta2) * gradient;
    value -= rate * (std::copysign(1.0, direction) + decay * value);
  };
  expect_history({.name = "lion", .settings = {{"lion-beta1", beta1}, {"lion-beta2", beta2}}}, rule);
}

/// Against the loop of lab/record/lion_steps.py, in double.
TEST(Optimizer, LionStepsAsRecorded) {
  ParameterTable::Builder builder;
  builder.unit("unit").tensor("weight", {10}, {});
  const ParameterTable table = builder.build();
  const auto formula = [](auto function, double scale) {
    Values values;
    for (int i = 1; i <= 10; ++i) values.push_back(scale * function(static_cast<double>(i)));
    return device_vector<float>(values);
  };
  std::ifstream lines(golden_data() / "lion_steps.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json recorded = nlohmann::json::parse(line);
    const auto weight = formula([](double x) { return std::sin(x); }, 1.0);
    const Vector<float> gradient("test::gradient", weight.size());
    const std::vector<ParameterSlice> slices = {{0, 0, weight.size(), weight, gradient}};
    const auto optimizer =
        make_optimizer({.name = "lion",
                        .weight_decay = recorded["weight_decay"],
                        .settings = {{"lion-beta1", recorded["beta1"]}, {"lion-beta2", recorded["beta2"]}}},
                       table, slices);
    const UpdateSettings settings{.step = 0, .learning_rate = recorded["learning_rate"]};
    for (int step = 1; step <= recorded["steps"]; ++step) {
      Kokkos::deep_copy(gradient, formula([&](double x) { return std::cos(x * step); }, 2.0));
      optimizer->update(ExecutionSpace(), settings, update_control());
    }
    expect_near(host_values(weight), recorded["values"].get<Values>(), 1e-6, "weights");
    expect_near(host_values(optimizer->slot(0, 0)), recorded["moment"].get<Values>(), 1e-6, "moment");
  }
}

/// The options of a kind begin with its initial values, and no two kinds share one.
TEST(OptimizerConfig, HasTheInitialValuesOfAllKinds) {
  OptimizerConfig config;
  EXPECT_EQ(config.kind().name, "adamw");
  std::set<std::string_view> names;
  for (const OptimizerKind& kind : optimizer_kinds()) {
    for (const OptimizerSetting& setting : kind.settings) {
      EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
      EXPECT_EQ(std::as_const(config).value(setting.name), setting.initial) << setting.name;
    }
  }
  config.value("momentum") = 0.5;
  EXPECT_EQ(std::as_const(config).value("momentum"), 0.5);
  EXPECT_THAT(error_of([&] { config.value("speed"); }), HasSubstr("no optimizer has a setting speed"));
  config.name = "adam";
  EXPECT_THAT(error_of([&] { config.kind(); }), HasSubstr("no optimizer adam"));
}

/// Slices keep the copies of frozen tensors.
TEST(Optimizer, UpdatesWriteRoundedCopies) {
  const ParameterTable table = two_units();
  for (const OptimizerKind& kind : optimizer_kinds()) {
    Slices slices(table, true);
    for (ParameterSlice& part : slices.slices) {
      const Vector<std::byte> values("test::rounded", 2 * part.master.size());
      part.rounded = std::make_shared<RoundedCopy>(RoundedCopy{values, Precision::bfloat16});
    }
    slices.set_gradients(0);
    make_optimizer({.name = std::string(kind.name)}, table, slices.slices)
        ->update(ExecutionSpace(), settings_of(0), update_control());
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

/// Nesterov momentum and Lion cannot take an update back, and leave it as it is.
TEST(Optimizer, RevertTakesTheLastUpdateBack) {
  const ParameterTable table = two_units();
  for (const auto& [config, lasting] :
       {std::pair(OptimizerConfig{.name = "adamw"}, ""),
        {OptimizerConfig{.name = "sgd"}, ""},
        {OptimizerConfig{.name = "sgd", .settings = {{"nesterov", 1.0}}}, "with Nesterov momentum"},
        {OptimizerConfig{.name = "lion"}, "of Lion"}}) {
    OptimizerConfig decaying = config;
    decaying.weight_decay = 0.1;
    Slices slices(table, true);
    const auto optimizer = make_optimizer(decaying, table, slices.slices);
    const auto weights = [&] {
      std::vector<Values> all;
      for (const Vector<float>& master : slices.master_weights) all.push_back(host_values(master));
      return all;
    };
    std::vector<Values> before;
    for (std::size_t step = 0; step < steps; ++step) {
      slices.set_gradients(step);
      before = weights();
      optimizer->update(ExecutionSpace(), settings_of(step), update_control(0.5));
    }
    const std::vector<Values> updated = weights();
    EXPECT_NE(updated, before);
    EXPECT_EQ(optimizer->revert(ExecutionSpace(), settings_of(steps - 1)), lasting) << config.name;
    for (std::size_t i = 0; i < before.size(); ++i) {
      expect_near(weights()[i], *lasting == 0 ? before[i] : updated[i], 2e-7,
                  fmt::format("{}, unit {}", config.name, i));
    }
  }
}

TEST(Optimizer, AnUpdateThatIsSkippedChangesNothing) {
  const ParameterTable table = two_units();
  for (const OptimizerKind& kind : optimizer_kinds()) {
    Slices slices(table, true);
    const auto optimizer = make_optimizer({.name = std::string(kind.name), .weight_decay = 0.1}, table, slices.slices);
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
  for (const OptimizerKind& kind : optimizer_kinds()) {
    const auto updated = [&](const Candidates<UpdateSettings>& settings, bool is_after_skip) {
      Slices slices(table, true);
      const auto optimizer =
          make_optimizer({.name = std::string(kind.name), .weight_decay = 0.1}, table, slices.slices);
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
  const auto adamw = make_optimizer({}, table, slices.slices);
  const auto sgd = make_optimizer({.name = "sgd"}, table, slices.slices);
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
