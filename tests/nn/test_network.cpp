// What a network does around the work of its units: the order of calls and hooks, recomputation, and the tables.

#include "nn/network.hpp"

#include "parallel/sharding/sharding_strategy.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace mylos::nn {
namespace {

using namespace tests;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Purpose = ParameterStore::Purpose;
using Calls = std::vector<std::string>;

constexpr std::size_t body_units = 3;

/// The calls of a network. The one called `failing` fails.
struct CallLog {
  void add(const std::string& call) {
    calls.push_back(call);
    if (call == failing) throw std::runtime_error(call + " failed");
  }

  Calls calls;
  std::string failing;
  std::size_t first_trained = 0;  ///< as a body was told it
};

class LoggedHooks final : public UnitHooks {
 public:
  explicit LoggedHooks(CallLog& log) : log_(log) {}
  void acquire(std::size_t unit) override { log_.add(fmt::format("acquire {}", unit)); }
  void release(std::size_t unit) override { log_.add(fmt::format("release {}", unit)); }
  void gradients_ready(std::size_t unit) override { log_.add(fmt::format("ready {}", unit)); }

 private:
  CallLog& log_;
};

/// One row of one element for each row of the batch.
class LoggedPass final : public BodyPass<float> {
 public:
  LoggedPass(CallLog& log, Arena& arena, std::size_t rows) : log_(log) {
    output_.x = output_.dx = arena.matrix<float>(rows, 1);
  }
  void forward(const Pass&, const Batch&, std::size_t unit) override { log_.add(fmt::format("forward {}", unit)); }
  void finish(const Pass&, const Batch&) override { log_.add("finish"); }
  void finish_backward(const Pass&, const Batch&) override { log_.add("finish backward"); }
  void restore(const Pass&, const Batch&, std::size_t unit) override { log_.add(fmt::format("restore {}", unit)); }
  void backward(const Pass&, const Batch&, std::size_t unit) override { log_.add(fmt::format("backward {}", unit)); }

 private:
  CallLog& log_;
};

class LoggedBody final : public Body<float> {
 public:
  explicit LoggedBody(CallLog& log) : log_(log) {}
  std::size_t width() const override { return 1; }
  void add_units(ParameterTable::Builder& builder) const override {
    for (std::size_t unit = 0; unit < body_units; ++unit) {
      const std::string name = fmt::format("body.{}", unit);
      builder.unit(name).tensor(name + ".weight", {4}, {});
    }
  }
  void add_final_tensors(ParameterTable::Builder& builder) const override { builder.tensor("norm.weight", {1}, {}); }
  void find_tensors(const ParameterTable& table) override { table.find("norm.weight"); }
  std::unique_ptr<BodyPass<float>> begin(Arena& arena, const BatchShape& shape, Purpose, Recompute,
                                         std::size_t first_trained) const override {
    log_.first_trained = first_trained;
    return std::make_unique<LoggedPass>(log_, arena, shape.rows);
  }
  std::vector<GemmProduct> products(const BatchShape&, Purpose) const override {
    return {{.name = "body/forward"}, {.name = "body/weight-gradient"}};
  }
  UnitFlops training_flops(std::size_t unit, const BatchShape&, Recompute recompute) const override {
    return {static_cast<double>(unit), 10.0, 1000.0, recompute == Recompute::layer ? 100.0 : 0.0};
  }

 private:
  CallLog& log_;
};

class LoggedHead final : public Head<float> {
 public:
  explicit LoggedHead(CallLog& log) : log_(log) {}
  void add_tensors(ParameterTable::Builder& builder, std::size_t width) const override {
    builder.tensor("classifier.weight", {2, width}, {});
  }
  void find_tensors(const ParameterTable& table) override { table.find("classifier.weight"); }
  void plan(Arena& arena, const BatchShape& shape, const HeadInput<float>&, Purpose) const override {
    arena.vector<float>(100 * shape.rows);
  }
  void train(const Pass&, const Batch&, float, const HeadInput<float>&, const Vector<float>&) const override {
    log_.add("head");
  }
  Matrix<float> predict(const Pass&, const Batch&, const HeadInput<float>& input, const Vector<float>&) const override {
    log_.add("predict");
    return input.x;
  }
  std::vector<GemmProduct> products(const BatchShape& shape, Purpose) const override {
    return {{.m = shape.rows, .name = "head/weight-gradient"}};
  }
  double training_flops(const BatchShape& shape) const override { return static_cast<double>(shape.rows); }

 private:
  CallLog& log_;
};

struct NetworkSetting {
  CallLog log;
  std::unique_ptr<Model> model =
      make_network<float>(std::make_unique<LoggedBody>(log), std::make_unique<LoggedHead>(log));

  const Calls& train(Recompute recompute) {
    with_pass([&](Pass& pass, const Batch& batch) {
      pass.recompute = recompute;
      model->train(pass, batch, 1.0f, {});
    });
    return log.calls;
  }
  const Calls& predict() {
    with_pass([&](const Pass& pass, const Batch& batch) { model->predict(pass, batch, {}); });
    return log.calls;
  }
  template <class F>
  void with_pass(const F& run) {
    const ParameterStore store(model->table(), Precision::float32, Purpose::training);
    const Gemm gemm(default_gemm_provider());
    LoggedHooks hooks(log);
    Arena arena("test::arena", 1 << 16);
    Pass pass{{}, gemm, store, hooks, arena};
    Batch batch;
    batch.reset(std::vector<std::size_t>{5, 2}, std::vector<std::uint32_t>{0, 1});
    run(pass, batch);
  }
};

const Calls forward_calls = {"acquire 0", "forward 0", "release 0", "acquire 1", "forward 1", "release 1",
                             "acquire 2", "forward 2", "release 2", "acquire 3", "finish"};

/// The calls of one training pass, with those of `restored` before the backward pass of each unit below the last.
Calls training_calls(bool restored) {
  Calls all = forward_calls;
  for (const char* call : {"head", "finish backward", "release 3", "ready 3"}) all.emplace_back(call);
  for (std::size_t unit = body_units; unit-- > 0;) {
    all.push_back(fmt::format("acquire {}", unit));
    if (restored && unit + 1 < body_units) all.push_back(fmt::format("restore {}", unit));
    for (const char* call : {"backward", "release", "ready"}) all.push_back(fmt::format("{} {}", call, unit));
  }
  return all;
}

TEST(Network, CallsUnitsAndHooksInOrder) {
  EXPECT_EQ(NetworkSetting().train(Recompute::none), training_calls(false));
  Calls predicted = forward_calls;
  predicted.insert(predicted.end(), {"predict", "release 3"});
  EXPECT_EQ(NetworkSetting().predict(), predicted);
}

TEST(Network, RecomputesEachUnitOnceExceptTheLast) {
  for (const Recompute recompute : {Recompute::attention, Recompute::layer}) {
    EXPECT_EQ(NetworkSetting().train(recompute), training_calls(true));
  }
}

TEST(Network, CallsNothingAfterAnException) {
  for (const char* failing : {"forward 1", "finish", "head", "restore 1", "backward 2", "release 2"}) {
    NetworkSetting s;
    s.log.failing = failing;
    EXPECT_THAT(error_of([&] { s.train(Recompute::layer); }), HasSubstr("failed"));
    const Calls all = training_calls(true);
    EXPECT_EQ(s.log.calls, Calls(all.begin(), std::ranges::find(all, failing) + 1));
  }
}

TEST(Network, TheHeadsUnitIsLastAndHasTheBodysFinalTensors) {
  const NetworkSetting s;
  const ParameterTable& table = s.model->table();
  std::vector<std::string> units, last;
  for (const ParameterUnit& unit : table.units()) units.push_back(unit.name);
  EXPECT_THAT(units, ElementsAre("body.0", "body.1", "body.2", "head"));
  for (const ParameterTensor& tensor : table.tensors()) {
    if (tensor.unit == body_units) last.push_back(tensor.name);
  }
  EXPECT_THAT(last, ElementsAre("classifier.weight", "norm.weight"));
}

TEST(Network, CountsWhatItsPartsCount) {
  const NetworkSetting s;
  EXPECT_THAT(s.model->unit_flops({2, 6, 5}, Recompute::none), ElementsAre(1010.0, 1011.0, 1012.0, 6.0));
  EXPECT_THAT(s.model->unit_flops({2, 6, 5}, Recompute::layer), ElementsAre(1110.0, 1111.0, 1012.0, 6.0));
  const std::vector<GemmProduct> products = s.model->products({2, 7, 5}, Purpose::training);
  ASSERT_EQ(products.size(), 3u);
  EXPECT_EQ(products[0].name, "body/forward");
  EXPECT_EQ(products[1].name, "body/weight-gradient");
  EXPECT_EQ(products[2].name, "head/weight-gradient");
  EXPECT_EQ(products[2].m, 7u);
  Arena planned;
  s.model->plan(planned, {2, 7, 5}, Purpose::training, Recompute::none);
  EXPECT_EQ(planned.peak(), 256u + 2816u) << "7 and 700 floats, in multiples of 256 bytes";
}

/// The head counts a third of its operations for each part of its pass.
TEST(Network, FrozenUnitsNeedNoWeightGradients) {
  const auto flops = [](const std::vector<std::string>& patterns) {
    const NetworkSetting s;
    s.model->freeze(patterns);
    return s.model->unit_flops({2, 6, 5}, Recompute::layer);
  };
  EXPECT_THAT(flops({"body.1"}), ElementsAre(1110.0, 111.0, 1012.0, 6.0));
  EXPECT_THAT(flops({"body.0-1"}), ElementsAre(0.0, 1.0, 1012.0, 6.0)) << "nothing is computed again below body.2";
  EXPECT_THAT(flops({"head"}), ElementsAre(1110.0, 1111.0, 1012.0, 4.0)) << "a norm of the body is trained";
  EXPECT_THAT(flops({"norm.weight"}), ElementsAre(1110.0, 1111.0, 1012.0, 6.0));
  EXPECT_THAT(flops({"body"}), ElementsAre(0.0, 1.0, 2.0, 4.0));
}

/// The providers of a product that no pass computes need not be timed when a run starts.
TEST(Network, FrozenPartsListNoWeightGradients) {
  const auto names = [](const std::vector<std::string>& patterns) {
    const NetworkSetting s;
    s.model->freeze(patterns);
    std::vector<std::string> all;
    for (const GemmProduct& product : s.model->products({2, 7, 5}, Purpose::training)) all.push_back(product.name);
    return all;
  };
  EXPECT_THAT(names({"body.0-1"}), ElementsAre("body/forward", "body/weight-gradient", "head/weight-gradient"));
  EXPECT_THAT(names({"body"}), ElementsAre("body/forward", "head/weight-gradient"));
  EXPECT_THAT(names({"head"}), ElementsAre("body/forward", "body/weight-gradient"));
}

TEST(Network, BackwardPassesEndAtTheFirstTrainedUnit) {
  NetworkSetting s;
  s.model->freeze(std::vector<std::string>{"body.0-1"});
  Calls expected = forward_calls;
  expected.insert(expected.end(), {"head", "finish backward", "release 3", "ready 3", "acquire 2", "backward 2",
                                   "release 2", "ready 2"});
  EXPECT_EQ(s.train(Recompute::layer), expected);
  EXPECT_EQ(s.log.first_trained, 2u);
  NetworkSetting whole_body;
  whole_body.model->freeze(std::vector<std::string>{"body"});
  expected = forward_calls;
  expected.insert(expected.end(), {"head", "release 3", "ready 3"});
  EXPECT_EQ(whole_body.train(Recompute::none), expected);
  EXPECT_EQ(whole_body.log.first_trained, body_units + 1);
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A table of three layers, with a norm of the body in the head's unit.
ParameterTable small_table() {
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor("words.weight", {9, 4}, {}).tensor("positions.weight", {3, 4}, {});
  for (const std::string layer : {"layer.0", "layer.1", "layer.10"}) {
    builder.unit(layer).tensor(layer + ".weight", {4, 4}, {}).tensor(layer + ".bias", {4}, {}, {.decay = false});
  }
  builder.unit("head").head(true).tensor("classifier.weight", {2, 4}, {});
  builder.head(false).tensor("norm.weight", {4}, {}, {.decay = false});
  return builder.build();
}

std::vector<std::string> frozen_by(const std::vector<std::string>& patterns) {
  ParameterTable table = small_table();
  freeze_tensors(table, patterns);
  std::vector<std::string> names;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (!tensor.group.trainable) names.push_back(tensor.name);
  }
  return names;
}

std::vector<std::string> frozen_units(const std::vector<std::string>& patterns) {
  ParameterTable table = small_table();
  freeze_tensors(table, patterns);
  std::vector<std::string> names;
  for (const ParameterUnit& unit : table.units()) {
    if (!unit.trained) names.push_back(unit.name);
  }
  return names;
}

TEST(FrozenTensors, AreSelectedByUnitsAndGlobs) {
  EXPECT_THAT(frozen_by({}), ElementsAre());
  EXPECT_THAT(frozen_by({"embeddings"}), ElementsAre("words.weight", "positions.weight"));
  EXPECT_THAT(frozen_units({"layers.0-1"}), ElementsAre("layer.0", "layer.1"));
  EXPECT_THAT(frozen_units({"layer.1"}), ElementsAre("layer.1"));
  EXPECT_THAT(frozen_units({"layers"}), ElementsAre("layer.0", "layer.1", "layer.10"));
  EXPECT_THAT(frozen_units({"layers.2-10", "embeddings"}), ElementsAre("embeddings", "layer.10"));
  EXPECT_THAT(frozen_by({"*.bias"}), ElementsAre("layer.0.bias", "layer.1.bias", "layer.10.bias"));
  EXPECT_THAT(frozen_by({"words.weight"}), ElementsAre("words.weight"));
  EXPECT_THAT(frozen_units({"*.bias"}), ElementsAre("layer.0.frozen", "layer.1.frozen", "layer.10.frozen"));
}

TEST(FrozenTensors, BodyAndHeadAreTheTwoPartsOfANetwork) {
  const std::vector<std::string> body = frozen_by({"body"});
  EXPECT_EQ(body.size(), small_table().tensors().size() - 1);
  EXPECT_THAT(body, ::testing::Contains("norm.weight"));
  EXPECT_THAT(frozen_by({"head"}), ElementsAre("classifier.weight"));
  EXPECT_THAT(frozen_units({"body"}), ElementsAre("embeddings", "layer.0", "layer.1", "layer.10", "head.frozen"));
}

TEST(FrozenTensors, LeaveTheOrderAsItIs) {
  ParameterTable table = small_table();
  freeze_tensors(table, std::vector<std::string>{"*.weight"});
  const ParameterTable whole = small_table();
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    EXPECT_EQ(table.tensor(i).name, whole.tensor(i).name);
  }
  EXPECT_EQ(table.first_trained_unit(), 1u);
  EXPECT_EQ(table.trained_units(), 3u);
  EXPECT_EQ(table.trained_size(), 12u) << "three biases";
  EXPECT_FALSE(table.tensor(0).group.decay);
}

TEST(FrozenTensors, PatternsThatCannotBeMeantAreErrors) {
  const auto message = [](const std::vector<std::string>& patterns) {
    return tests::error_of([&] { frozen_by(patterns); });
  };
  EXPECT_THAT(message({"embeddings", "layers.11-12"}), HasSubstr("layers.11-12"));
  EXPECT_THAT(message({"layers.11-12"}), HasSubstr("its units are embeddings, layer.0 to layer.10 and head"));
  EXPECT_THAT(message({"layers.0-12"}), HasSubstr("layers.0-12`: layers.12 selects no tensor of the model"));
  EXPECT_THAT(message({"layers.1-0"}), HasSubstr("selects no tensor"));
  EXPECT_THAT(message({"body", "head"}), HasSubstr("no tensor of the model is left to train"));
  EXPECT_THAT(message({"*"}), HasSubstr("no tensor of the model is left to train"));
}

TEST(FrozenTensors, StagesMayHaveDifferentNumbersOfLayers) {
  const auto freeze = [](const char* pattern) {
    ParameterTable::Builder builder;
    for (const char* unit : {"stages.0.layers.0", "stages.0.layers.1", "stages.1.layers.0", "head"}) {
      builder.unit(unit).tensor(std::string(unit) + ".weight", {4}, {});
    }
    ParameterTable table = builder.build();
    freeze_tensors(table, std::vector<std::string>{pattern});
    return table.trained_units();
  };
  EXPECT_EQ(freeze("stages.0-1.layers.0-1"), 1u);
  EXPECT_THAT(tests::error_of([&] { freeze("stages.0-1.layers.0-2"); }),
              HasSubstr("stages.0-1.layers.2 selects no tensor"));
  EXPECT_THAT(tests::error_of([&] { freeze("stages.0-2.layers.0"); }),
              HasSubstr("stages.2.layers.0 selects no tensor"));
}

}  // namespace
}  // namespace mylos::nn
