#include "train/engine/best_model.hpp"

#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mylos::train {
namespace {

const std::vector<MetricKind> kinds = {
    {"validation_loss", "Validation loss", "", false}, {"f1", "F1", "%"}, {"perplexity", "Perplexity", "", false}};

Metrics metrics(double loss, double f1) { return {{"validation_loss", loss}, {"f1", f1}}; }

TEST(BestModel, ByLossIsTheSmallest) {
  BestModel best("loss", 0, kinds);
  EXPECT_TRUE(best.offer(metrics(2.0, 10.0), 1));
  EXPECT_FALSE(best.offer(metrics(3.0, 20.0), 1));
  EXPECT_TRUE(best.offer(metrics(1.0, 5.0), 1));
  EXPECT_EQ(best.metrics(), metrics(1.0, 5.0));
}

TEST(BestModel, ByAMetricIsTheLargest) {
  BestModel best("f1", 0, kinds);
  EXPECT_TRUE(best.offer(metrics(2.0, 10.0), 1));
  EXPECT_TRUE(best.offer(metrics(3.0, 20.0), 1));
  EXPECT_FALSE(best.offer(metrics(1.0, 5.0), 1));
  EXPECT_EQ(best.metrics(), metrics(3.0, 20.0));
}

TEST(BestModel, WhichIsBetterIsTheMetricsOwnMatter) {
  BestModel best("perplexity", 0, kinds);
  EXPECT_TRUE(best.offer({{"validation_loss", 3.0}, {"perplexity", 20.0}}, 1));
  EXPECT_FALSE(best.offer({{"validation_loss", 2.0}, {"perplexity", 30.0}}, 1));
  EXPECT_TRUE(best.offer({{"validation_loss", 4.0}, {"perplexity", 10.0}}, 1));
}

TEST(BestModel, AnEqualOneIsNotBetter) {
  BestModel best("loss", 0, kinds);
  EXPECT_TRUE(best.offer(metrics(2.0, 10.0), 1));
  EXPECT_FALSE(best.offer(metrics(2.0, 20.0), 1));
  EXPECT_EQ(best.metrics(), metrics(2.0, 10.0));
}

TEST(BestModel, HasNoMetricsBeforeTheFirst) { EXPECT_TRUE(BestModel("loss", 0, kinds).metrics().empty()); }

TEST(BestModel, PatienceEndsAfterSoManyWithoutABetterOne) {
  BestModel best("loss", 2, kinds);
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
  BestModel first("loss", 2, kinds);
  first.offer({{"validation_loss", 1.0}}, 1);
  first.offer({{"validation_loss", 2.0}}, 1);
  EXPECT_EQ(first.since_best(), 1u);
  BestModel second("loss", 2, kinds);
  second.restore(first.metrics(), first.since_best(), 1, 1);
  EXPECT_FALSE(second.offer({{"validation_loss", 1.5}}, 1));
  EXPECT_TRUE(second.out_of_patience());
}

// Best of the checkpoint is that of step 4; an abandoned continuation exported the model after step 8 into best/.
TEST(BestModel, WhatAnAbandonedContinuationExportedIsReplaced) {
  BestModel best("loss", 4, kinds);
  best.restore({{"validation_loss", 1.0}}, 1, 4, 8);
  EXPECT_FALSE(best.offer({{"validation_loss", 2.0}}, 6)) << "the same continuation exports the same model again";
  EXPECT_TRUE(best.offer({{"validation_loss", 3.0}}, 8));
  EXPECT_EQ(best.step(), 8u);
  EXPECT_FALSE(best.offer({{"validation_loss", 3.0}}, 10));
  best.restore({{"validation_loss", 1.0}}, 2, 4, 8);
  EXPECT_FALSE(best.offer({{"validation_loss", 2.0}}, 5));
  EXPECT_TRUE(best.offer({{"validation_loss", 2.0}}, 6)) << "otherwise the patience would end here";
  EXPECT_FALSE(best.out_of_patience());
}

TEST(BestModel, ABetterOneThanThatOfTheCheckpointReplacesIt) {
  BestModel best("loss", 4, kinds);
  best.restore({{"validation_loss", 1.0}}, 1, 4, 8);
  EXPECT_TRUE(best.offer({{"validation_loss", 0.5}}, 6));
  EXPECT_FALSE(best.offer({{"validation_loss", 0.75}}, 8));
  EXPECT_EQ(best.step(), 6u);
}

TEST(BestModel, ZeroPatienceNeverEnds) {
  BestModel best("loss", 0, kinds);
  for (int i = 0; i < 10; ++i) best.offer(metrics(1.0, 0.0), 1);
  EXPECT_FALSE(best.out_of_patience());
}

TEST(BestModel, AnyNumberIsBetterThanAFirstLossThatIsNone) {
  BestModel best("loss", 0, kinds);
  EXPECT_TRUE(best.offer(metrics(std::nan(""), 0.0), 1));
  EXPECT_TRUE(best.offer(metrics(5.0, 0.0), 1));
  EXPECT_FALSE(best.offer(metrics(6.0, 0.0), 1));
}

TEST(BestModel, AMetricThatIsNotThereIsAnErrorThatListsThem) {
  BestModel best("accuracy", 0, kinds);
  EXPECT_EQ(tests::error_of([&] { best.offer(metrics(1.0, 2.0), 1); }),
            "`best-by accuracy`: the evaluation gives validation_loss, f1");
}

TEST(FindMetric, GivesTheValueOrNothing) {
  const Metrics both = metrics(1.0, 2.0);
  ASSERT_NE(find_metric(both, "f1"), nullptr);
  EXPECT_EQ(*find_metric(both, "f1"), 2.0);
  EXPECT_EQ(find_metric(both, "exact"), nullptr);
}

}  // namespace
}  // namespace mylos::train
