#include "train/engine/models/best_model.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mylos::train {
namespace {

const std::vector<MetricKind> kinds = {
    {"validation_loss", "Validation loss", "", false}, {"f1", "F1", "%"}, {"perplexity", "Perplexity", "", false}};

Metrics metrics(double loss, double f1) { return {{"validation_loss", loss}, {"f1", f1}}; }

bool is_best(BestModel& best, const Metrics& metrics, std::size_t step) {
  return best.offer(metrics, step) == BestModel::Place::best;
}

std::vector<std::size_t> steps_of(const std::vector<ScoredStep>& kept) {
  std::vector<std::size_t> steps;
  for (const ScoredStep& each : kept) steps.push_back(each.step);
  return steps;
}

TEST(BestModel, ByLossIsTheSmallest) {
  BestModel best({.by = "loss"}, kinds);
  EXPECT_TRUE(is_best(best, metrics(2.0, 10.0), 1));
  EXPECT_FALSE(is_best(best, metrics(3.0, 20.0), 1));
  EXPECT_TRUE(is_best(best, metrics(1.0, 5.0), 1));
  EXPECT_EQ(best.state().metrics, metrics(1.0, 5.0));
}

TEST(BestModel, ByAMetricIsTheLargest) {
  BestModel best({.by = "f1"}, kinds);
  EXPECT_TRUE(is_best(best, metrics(2.0, 10.0), 1));
  EXPECT_TRUE(is_best(best, metrics(3.0, 20.0), 1));
  EXPECT_FALSE(is_best(best, metrics(1.0, 5.0), 1));
  EXPECT_EQ(best.state().metrics, metrics(3.0, 20.0));
}

TEST(BestModel, WhichIsBetterIsTheMetricsOwnMatter) {
  BestModel best({.by = "perplexity"}, kinds);
  EXPECT_TRUE(is_best(best, {{"validation_loss", 3.0}, {"perplexity", 20.0}}, 1));
  EXPECT_FALSE(is_best(best, {{"validation_loss", 2.0}, {"perplexity", 30.0}}, 1));
  EXPECT_TRUE(is_best(best, {{"validation_loss", 4.0}, {"perplexity", 10.0}}, 1));
}

TEST(BestModel, AnEqualOneIsNotBetter) {
  BestModel best({.by = "loss"}, kinds);
  EXPECT_TRUE(is_best(best, metrics(2.0, 10.0), 1));
  EXPECT_FALSE(is_best(best, metrics(2.0, 20.0), 1));
  EXPECT_EQ(best.state().metrics, metrics(2.0, 10.0));
}

TEST(BestModel, HasNoMetricsBeforeTheFirst) { EXPECT_TRUE(BestModel({}, kinds).state().metrics.empty()); }

TEST(BestModel, PatienceEndsAfterSoManyWithoutABetterOne) {
  BestModel best({.by = "loss", .patience = 2}, kinds);
  best.offer(metrics(2.0, 0.0), 1);
  best.offer(metrics(3.0, 0.0), 1);
  EXPECT_FALSE(best.out_of_patience());
  best.offer(metrics(1.0, 0.0), 1);
  best.offer(metrics(1.5, 0.0), 1);
  EXPECT_FALSE(best.out_of_patience()) << "the better one starts the count again";
  best.offer(metrics(1.5, 0.0), 1);
  EXPECT_TRUE(best.out_of_patience());
}

TEST(BestModel, GoesOnFromWhereAnotherStartWas) {
  BestModel first({.by = "loss", .patience = 2}, kinds);
  first.offer({{"validation_loss", 1.0}}, 1);
  first.offer({{"validation_loss", 2.0}}, 1);
  EXPECT_EQ(first.state().since_best, 1u);
  BestModel second({.by = "loss", .patience = 2}, kinds);
  second.restore(first.state(), 1);
  EXPECT_FALSE(is_best(second, {{"validation_loss", 1.5}}, 1));
  EXPECT_TRUE(second.out_of_patience());
}

// Best of the checkpoint is that of step 4; an abandoned continuation exported the model after step 8 into best/.
TEST(BestModel, WhatAnAbandonedContinuationExportedIsReplaced) {
  BestModel best({.by = "loss", .patience = 4}, kinds);
  best.restore({.metrics = {{"validation_loss", 1.0}}, .step = 4, .since_best = 1}, 8);
  EXPECT_FALSE(is_best(best, {{"validation_loss", 2.0}}, 6)) << "the same continuation exports the same model again";
  EXPECT_TRUE(is_best(best, {{"validation_loss", 3.0}}, 8));
  EXPECT_EQ(best.state().step, 8u);
  EXPECT_FALSE(is_best(best, {{"validation_loss", 3.0}}, 10));
  best.restore({.metrics = {{"validation_loss", 1.0}}, .step = 4, .since_best = 2}, 8);
  EXPECT_FALSE(is_best(best, {{"validation_loss", 2.0}}, 5));
  EXPECT_TRUE(is_best(best, {{"validation_loss", 2.0}}, 6)) << "otherwise the patience would end here";
  EXPECT_FALSE(best.out_of_patience());
}

TEST(BestModel, ABetterOneThanThatOfTheCheckpointReplacesIt) {
  BestModel best({.by = "loss", .patience = 4}, kinds);
  best.restore({.metrics = {{"validation_loss", 1.0}}, .step = 4, .since_best = 1}, 8);
  EXPECT_TRUE(is_best(best, {{"validation_loss", 0.5}}, 6));
  EXPECT_FALSE(is_best(best, {{"validation_loss", 0.75}}, 8));
  EXPECT_EQ(best.state().step, 6u);
}

TEST(BestModel, ZeroPatienceNeverEnds) {
  BestModel best({.by = "loss"}, kinds);
  for (int i = 0; i < 10; ++i) best.offer(metrics(1.0, 0.0), 1);
  EXPECT_FALSE(best.out_of_patience());
}

TEST(BestModel, AnyNumberIsBetterThanAFirstLossThatIsNone) {
  BestModel best({.by = "loss"}, kinds);
  EXPECT_TRUE(is_best(best, metrics(std::nan(""), 0.0), 1));
  EXPECT_TRUE(is_best(best, metrics(5.0, 0.0), 1));
  EXPECT_FALSE(is_best(best, metrics(6.0, 0.0), 1));
}

TEST(BestModel, AMetricThatIsNotThereIsAnErrorThatListsThem) {
  BestModel best({.by = "accuracy"}, kinds);
  EXPECT_EQ(tests::error_of([&] { best.offer(metrics(1.0, 2.0), 1); }),
            "`best-by accuracy`: the evaluation gives validation_loss, f1");
}

// As Lightning's EarlyStopping: small gains add up until they exceed the least change, and replace best/ meanwhile.
TEST(BestModel, ASmallGainIsTheBestButDoesNotStartThePatienceAgain) {
  BestModel best({.patience = 3, .min_delta = 0.5}, kinds);
  EXPECT_TRUE(is_best(best, {{"validation_loss", 4.0}}, 1));
  EXPECT_TRUE(is_best(best, {{"validation_loss", 3.75}}, 2));
  EXPECT_TRUE(is_best(best, {{"validation_loss", 3.5}}, 3)) << "not more than the least change";
  EXPECT_EQ(best.state().since_best, 2u);
  EXPECT_TRUE(is_best(best, {{"validation_loss", 3.25}}, 4));
  EXPECT_EQ(best.state().since_best, 0u) << "0.75 less than at the last improvement";
  BestModel by_score({.by = "f1", .patience = 1, .min_delta = 1.0}, kinds);
  by_score.offer(metrics(1.0, 10.0), 1);
  EXPECT_TRUE(is_best(by_score, metrics(1.0, 10.5), 2));
  EXPECT_TRUE(by_score.out_of_patience());
}

TEST(BestModel, ARestoredOneComparesWithTheLastImprovement) {
  BestModel first({.patience = 3, .min_delta = 0.5}, kinds), second = first;
  first.offer({{"validation_loss", 4.0}}, 1);
  first.offer({{"validation_loss", 3.75}}, 2);
  second.restore(first.state(), 2);
  second.offer({{"validation_loss", 3.4}}, 3);
  EXPECT_EQ(second.state().since_best, 0u);
}

// A killed run went on to step 2 before it was resumed after step 1.
TEST(BestModel, ARepeatedContinuationEndsWhereItWouldHave) {
  const auto end_of = [](BestModel best) {
    for (const auto& [step, loss] : {std::pair(2, 9.5), {3, 9.4}, {4, 9.3}, {5, 9.2}}) {
      best.offer({{"validation_loss", loss}}, static_cast<std::size_t>(step));
      if (best.out_of_patience()) return step;
    }
    return 0;
  };
  BestModel whole({.patience = 3, .min_delta = 1.0, .keep = 2}, kinds), resumed = whole;
  whole.offer({{"validation_loss", 10.0}}, 1);
  resumed.restore(whole.state(), 2);
  EXPECT_EQ(end_of(resumed), end_of(whole));
}

TEST(BestModel, KeptModelsStayInOrderWhenAWorseOneReplacesALostBest) {
  BestModel best({.keep = 2}, kinds);
  best.restore({.metrics = {{"validation_loss", 1.0}}, .step = 4, .kept = {{4, 1.0}, {2, 3.0}}}, 8);
  EXPECT_TRUE(is_best(best, {{"validation_loss", 2.0}}, 8));
  EXPECT_EQ(steps_of(best.state().kept), (std::vector<std::size_t>{4, 8}));
}

TEST(BestModel, KeepsSoManyInTheOrderOfTheMetric) {
  using Place = BestModel::Place;
  BestModel best({.keep = 3}, kinds);
  const auto offer = [&](double loss, std::size_t step) { return best.offer({{"validation_loss", loss}}, step); };
  EXPECT_EQ(offer(3.0, 1), Place::best);
  EXPECT_EQ(offer(4.0, 2), Place::kept);
  EXPECT_EQ(offer(2.0, 3), Place::best);
  EXPECT_EQ(steps_of(best.state().kept), (std::vector<std::size_t>{3, 1, 2}));
  EXPECT_EQ(offer(4.0, 4), Place::passed) << "no better than the last of three";
  EXPECT_EQ(offer(2.5, 5), Place::kept);
  EXPECT_EQ(steps_of(best.state().kept), (std::vector<std::size_t>{3, 5, 1}));
  EXPECT_EQ(offer(2.5, 5), Place::kept) << "a repeated evaluation takes its own place";
  EXPECT_EQ(steps_of(best.state().kept), (std::vector<std::size_t>{3, 5, 1}));
}

TEST(FindMetric, GivesTheValueOrNothing) {
  const Metrics both = metrics(1.0, 2.0);
  ASSERT_NE(find_metric(both, "f1"), nullptr);
  EXPECT_EQ(*find_metric(both, "f1"), 2.0);
  EXPECT_EQ(find_metric(both, "exact"), nullptr);
}

}  // namespace
}  // namespace mylos::train
