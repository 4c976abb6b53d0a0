#pragma once

#include "tests/nn/gradient_check.hpp"
#include "tests/support/engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

/// Helpers that run a model on packed samples, for the tests of every model family.
namespace mylos::tests {

/// A model with memory, parameters, and samples: groups of rows that `data` packs.
template <class Model, class Data>
struct ModelSetting {
  ModelSetting(std::unique_ptr<Model> made, Data samples, const std::string& provider,
               nn::Recompute recomputed = nn::Recompute::none, Precision precision = Precision::float32)
      : recompute(recomputed), data(std::move(samples)), model(std::move(made)), provider_(provider) {
    engine = std::make_unique<Engine>(model->table(), precision, planned(), provider_);
  }
  /// Begins anew with the tensors frozen that these patterns select.
  void freeze(const std::vector<std::string>& patterns) {
    model->freeze(patterns);
    begin_anew();
  }
  /// Begins anew with these adapters.
  void adapt(const nn::Adapters& adapters) {
    model->adapt(adapters);
    begin_anew();
  }
  /// The memory of a training pass over all samples, by plan.
  std::size_t training_bytes() const {
    Arena training;
    model->plan(training, data.shape(), ParameterStore::Purpose::training, recompute);
    return training.peak();
  }
  std::size_t planned() const {
    Arena prediction;
    model->plan(prediction, data.shape(), ParameterStore::Purpose::inference, nn::Recompute::none);
    return std::max(training_bytes(), prediction.peak());
  }
  /// Trains in micro-batches of `size` samples. Returns all losses.
  Values train(std::size_t size, float scale) {
    Values all;
    Batch batch;
    observed.clear();
    for (std::size_t begin = 0; begin < data.shape().samples; begin += size) {
      const std::size_t end = std::min(begin + size, data.shape().samples);
      data.fill(begin, end, batch);
      const Vector<float> losses("test::losses", end - begin);
      nn::Pass pass = engine->pass();
      pass.recompute = recompute;
      if (model->table().observed_size() > 0)
        pass.observed = Matrix<float>("test::observed", end - begin, model->table().observed_size());
      model->train(pass, batch, scale, losses);
      const Values of_part = host_values(losses), statistics = host_values(pass.observed);
      all.insert(all.end(), of_part.begin(), of_part.end());
      observed.insert(observed.end(), statistics.begin(), statistics.end());
    }
    return all;
  }
  /// Returns the outputs for the first `samples` samples, and writes their losses.
  Values predict(std::size_t samples, const Vector<float>& losses = {}) {
    Batch batch;
    data.fill(0, samples, batch);
    return host_values(model->predict(engine->pass(), batch, losses));
  }
  const std::string& name(std::size_t row) const { return model->table().tensor(row).name; }
  std::size_t parameters() const { return model->table().tensors().size(); }
  /// Returns the gradient of each tensor; that of a frozen one is empty.
  std::vector<Values> gradients() const {
    std::vector<Values> all;
    for (std::size_t row = 0; row < parameters(); ++row) {
      all.push_back(model->table().tensor(row).group.trainable ? engine->gradient(row) : Values());
    }
    return all;
  }

  nn::Recompute recompute;
  Data data;
  std::unique_ptr<Model> model;
  std::unique_ptr<Engine> engine;
  Values observed;  ///< statistics of each group of images

 private:
  void begin_anew() {
    engine = std::make_unique<Engine>(model->table(), engine->store.precision(), planned(), provider_);
  }

  std::string provider_;
};

/// Returns the calls of a training pass that goes back to the first trained unit.
inline std::vector<RecordingHooks::Entry> expected_calls(const ParameterTable& table) {
  std::vector<RecordingHooks::Entry> calls = expected_training_calls(table.network_units());
  const auto forward = calls.begin() + 2 * static_cast<std::ptrdiff_t>(table.network_units()) - 1;
  calls.erase(std::remove_if(forward, calls.end(),
                             [&](const RecordingHooks::Entry& call) {
                               const bool is_ready = call.event == RecordingHooks::Event::gradients_ready;
                               return call.unit < table.first_trained_unit() ||
                                      (is_ready && !table.units()[call.unit].trained);
                             }),
              calls.end());
  return calls;
}

/// Expects that with these tensors frozen, `part` has the losses and the other gradients of `whole`, bit for bit, no
/// gradients of what is frozen, and no backward pass below the first trained unit, for which it also plans no memory.
template <class Setting>
void expect_frozen(Setting whole, Setting part, const std::vector<std::string>& patterns) {
  SCOPED_TRACE(fmt::format("frozen: {}", fmt::join(patterns, ",")));
  part.freeze(patterns);
  const ParameterTable& table = part.model->table();
  const std::size_t samples = whole.data.shape().samples;
  EXPECT_EQ(part.train(samples, 0.5f), whole.train(samples, 0.5f));
  EXPECT_EQ(part.engine->arena.peak(), part.training_bytes());
  EXPECT_LE(part.training_bytes(), whole.training_bytes());
  // The first unit may keep nothing anyway, and there is memory for one layer in any case.
  if (table.first_trained_unit() > 1 && table.network_units() > 3 && part.recompute == nn::Recompute::none) {
    EXPECT_LT(part.training_bytes(), whole.training_bytes());
  }
  const ParameterStore& store = part.engine->store;
  for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
    EXPECT_EQ(store.gradient_memory(unit).size() > 0, table.units()[unit].trained) << table.units()[unit].name;
    if (table.units()[unit].trained) store.finish_gradients(part.engine->space, unit);
  }
  for (std::size_t row = 0; row < table.tensors().size(); ++row) {
    const ParameterTensor& tensor = table.tensor(row);
    if (!table.units()[tensor.unit].trained) continue;
    const Values all = host_values(store.unit_gradients(tensor.unit));
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
    const Values expected = tensor.group.trainable ? whole.engine->gradient(row) : Values(tensor.size, 0.0);
    EXPECT_EQ(Values(first, first + static_cast<std::ptrdiff_t>(tensor.size)), expected) << tensor.name;
  }
  EXPECT_EQ(part.engine->hooks.entries(), expected_calls(table));
}

/// Returns adapters of ranks 1 to 3 for the linear layers whose names end like one of `ends`.
inline nn::Adapters adapters_of(const nn::Model& model, const std::vector<std::string>& ends, float dropout = 0.0f) {
  nn::Adapters adapters{.dropout = dropout};
  for (const std::string& module : nn::linear_modules(model.table())) {
    if (std::ranges::none_of(ends, [&](const std::string& end) { return module.ends_with(end); })) continue;
    const std::size_t count = adapters.layers.size();
    adapters.layers.push_back({module, 1 + count % 3, 0.5f + 0.25f * static_cast<float>(count % 2)});
  }
  return adapters;
}

/// The matrices of an adapter, the gradient of the weight W + scale B A beside them, and what follows from it.
struct AdapterTwin {
  Values a, b, dweight;
  std::size_t rank, in, out;
  double scale;

  template <class Use>
  void for_each(const Use& use) const {
    for (std::size_t row = 0; row < out; ++row) {
      for (std::size_t column = 0; column < in; ++column) {
        for (std::size_t k = 0; k < rank; ++k) use(row * in + column, k * in + column, row * rank + k);
      }
    }
  }
  Values added() const {
    Values weight(out * in);
    for_each([&](std::size_t w, std::size_t down, std::size_t up) { weight[w] += scale * b[up] * a[down]; });
    return weight;
  }
  Values down_gradient() const {
    Values gradient(rank * in);
    for_each([&](std::size_t w, std::size_t down, std::size_t up) { gradient[down] += scale * b[up] * dweight[w]; });
    return gradient;
  }
  Values up_gradient() const {
    Values gradient(out * rank);
    for_each([&](std::size_t w, std::size_t down, std::size_t up) { gradient[up] += scale * dweight[w] * a[down]; });
    return gradient;
  }
};

/// Expects of a setting with these adapters, which have no dropout, the losses of one with merged weights, and the
/// gradients that follow from those of the merged weights; no backward pass below the first trained unit, and the
/// planned memory.
template <class Make>
void expect_adapted(const Make& make, const nn::Adapters& adapters) {
  SCOPED_TRACE(fmt::format("trained whole: {}", fmt::join(adapters.trained, ",")));
  auto part = make(), merged = make();
  part.adapt(adapters);
  const ParameterTable& table = part.model->table();
  const auto twin_of = [&](const nn::Adapter& adapter) {
    const std::size_t down = table.find(adapter.module + nn::adapter_a),
                      up = table.find(adapter.module + nn::adapter_b), weight = table.find(adapter.module + ".weight");
    return AdapterTwin{part.engine->values(down),
                       part.engine->values(up),
                       merged.engine->gradient(weight),
                       adapter.rank,
                       table.tensor(weight).shape[1],
                       table.tensor(weight).shape[0],
                       adapter.scale};
  };
  for (const nn::Adapter& adapter : adapters.layers) {
    const std::size_t weight = table.find(adapter.module + ".weight");
    Values values = part.engine->values(weight);
    const Values added = twin_of(adapter).added();
    std::ranges::transform(values, added, values.begin(), std::plus());
    merged.engine->write(weight, values);
  }
  const std::size_t samples = part.data.shape().samples;
  merged.engine->strategy->begin_step(merged.engine->space);
  expect_near(part.train(samples, 0.5f), merged.train(samples, 0.5f), 1e-5, "losses");
  const auto expect_gradient_near = [&](const std::string& name, const Values& expected) {
    expect_near(part.engine->gradient(table.find(name)), expected, 2e-5 * (1.0 + largest_of(expected)), name);
    EXPECT_GT(largest_of(expected), 0.0) << name;
  };
  for (const nn::Adapter& adapter : adapters.layers) {
    const AdapterTwin twin = twin_of(adapter);
    expect_gradient_near(adapter.module + nn::adapter_a, twin.down_gradient());
    expect_gradient_near(adapter.module + nn::adapter_b, twin.up_gradient());
  }
  for (std::size_t row = 0; row < merged.parameters(); ++row) {
    if (table.tensor(row).group.trainable) expect_gradient_near(merged.name(row), merged.engine->gradient(row));
  }
  EXPECT_EQ(part.engine->arena.peak(), part.training_bytes());
  EXPECT_EQ(part.engine->hooks.entries(), expected_calls(table));
}

/// Expects the twin's losses and its gradients of every tensor, by central differences.
template <class Setting, class Twin>
void expect_losses_and_gradients(Setting& s, Twin& twin, double noise) {
  constexpr double scale = 0.5;
  expect_near(s.train(s.data.shape().samples, static_cast<float>(scale)), twin.losses(), 1e-5, "losses");
  const auto loss = [&] {
    const Values losses = twin.losses();
    return scale * std::accumulate(losses.begin(), losses.end(), 0.0);
  };
  for (std::size_t row = 0; row < s.parameters(); ++row) {
    expect_gradient(twin.parameter(row), s.engine->gradient(row), loss, noise, s.name(row));
  }
}

/// Expects that micro-batches of these sizes give the losses and gradients of the whole batch.
template <class Make>
void expect_same_in_micro_batches(const Make& make, std::initializer_list<std::size_t> sizes) {
  auto whole = make();
  const Values losses = whole.train(whole.data.shape().samples, 0.1f);
  for (const std::size_t size : sizes) {
    auto split = make();
    expect_near(split.train(size, 0.1f), losses, 2e-6, fmt::format("losses by {}", size));
    const std::vector<Values> of_whole = whole.gradients(), of_split = split.gradients();
    for (std::size_t row = 0; row < whole.parameters(); ++row) {
      const Values &expected = of_whole[row], &actual = of_split[row];
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], 1e-5 * largest_of(expected) + 1e-6) << whole.name(row) << " by " << size;
      }
    }
  }
}

/// Expects the calls of the unit hooks in both directions, and gradients that are not written after they are ready.
template <class Setting>
void expect_schedule(Setting& s, std::size_t units) {
  ASSERT_EQ(s.model->table().units().size(), units);
  s.train(s.data.shape().samples, 1.0f);
  EXPECT_EQ(s.engine->hooks.entries(), expected_training_calls(units));
  for (std::size_t unit = 0; unit < units; ++unit) {
    EXPECT_EQ(host_values(s.engine->store.unit_gradients(unit)), s.engine->hooks.gradients_when_ready(unit));
  }
  s.engine->hooks.clear();
  s.predict(2);
  EXPECT_EQ(s.engine->hooks.entries(), expected_prediction_calls(units));
}

/// Expects that a training pass takes the memory that was planned for it.
template <class Setting>
void expect_planned_memory(Setting& s) {
  s.train(s.data.shape().samples, 1.0f);
  EXPECT_EQ(s.engine->arena.peak(), s.training_bytes()) << to_string(s.recompute);
}

/// Expects the same bits whatever is recomputed. make(provider, recompute, precision) returns a setting.
template <class Make>
void expect_recomputation_changes_no_bit(const Make& make) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    for (const std::string& provider : exact_gemm_providers()) {
      auto kept = make(provider, nn::Recompute::none, precision);
      const Values losses = kept.train(3, 0.5f);
      for (const nn::Recompute recompute : {nn::Recompute::attention, nn::Recompute::layer}) {
        SCOPED_TRACE(fmt::format("{} {} {}", to_string(precision), provider, to_string(recompute)));
        auto again = make(provider, recompute, precision);
        EXPECT_TRUE(again.model->can_recompute(recompute));
        EXPECT_EQ(again.train(3, 0.5f), losses);
        EXPECT_EQ(again.gradients(), kept.gradients());
      }
    }
  }
}

}  // namespace mylos::tests
