#include "app/bench/step_breakdown.hpp"

#include "core/kernels/products/gemm_label.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mylos::app {
namespace {

const std::string product = "mylos::gemm NT 10 4 4 float float bias_gelu = onednn";

/// Weights (4, 4).
const std::vector<GemmProduct> products = {
    {.transpose_b = Transpose::yes, .m = 1, .n = 4, .k = 4, .name = "dense/forward"}};

/// A step of 10 s: 8 s in kernels, 1 s on the host and 1 s unaccounted.
ProfiledStep step() {
  ProfiledStep step;
  step.seconds = 10.0;
  const Work of_product = product_work(*parse_gemm_label(product));
  step.profile[{SpanKind::product, product, {}}] = {2, 4.0, of_product + of_product};
  step.profile[{SpanKind::kernel, "mylos::activation::gelu", product}] = {2, 1.0, Work{2 * 40 * 34.0, 2 * 40 * 8.0}};
  step.profile[{SpanKind::kernel, "mylos::optimizer::adamw", {}}] = {3, 2.0, Work{1500.0, 2800.0}};
  step.profile[{SpanKind::copy, "fill of mylos::gradients", {}}] = {1, 1.0, Work{0.0, 80.0}};
  step.profile[{SpanKind::section, "mylos::TrainingStep::pass", {}}] = {1, 1.0, std::nullopt};
  return step;
}

const BreakdownRow& row(const Breakdown& breakdown, const std::string& name) {
  const auto found = std::ranges::find(breakdown.kernels, name, &BreakdownRow::name);
  if (found == breakdown.kernels.end()) throw std::runtime_error("no row " + name);
  return *found;
}

TEST(StepBreakdown, EachRowHasItsWorkAndItsShareOfTheRoofline) {
  const Breakdown breakdown = make_breakdown(products, {step()}, {.flops = 1000.0, .bandwidth = 100.0});
  ASSERT_EQ(breakdown.kernels.size(), 4u);
  EXPECT_EQ(breakdown.kernels[0].name, "dense/forward by onednn");
  const BreakdownRow& first = breakdown.kernels[0];
  EXPECT_EQ(first.calls, 2.0);
  EXPECT_EQ(first.share, 0.4);
  EXPECT_EQ(first.work->flops, 2 * 320.0);
  EXPECT_EQ(*first.flops, 2 * 320.0 / 4.0);
  EXPECT_EQ(*first.bytes, 2 * 4.0 * (40 + 16 + 40) / 4.0);
  EXPECT_EQ(*first.roofline, std::max(160.0 / 1000.0, 192.0 / 100.0));
  // Part of two products of 40 elements, each of which is read once and written once.
  EXPECT_EQ(*row(breakdown, "mylos::activation::gelu, in a product").bytes, 2 * 40 * 8.0);
  EXPECT_EQ(*row(breakdown, "mylos::optimizer::adamw").bytes, 28.0 * 100 / 2.0);
  EXPECT_EQ(*row(breakdown, "fill of mylos::gradients").bytes, 80.0);
}

TEST(StepBreakdown, ProductsOfAnyNumberOfRowsShareARow) {
  ProfiledStep two = step();
  const std::string longer = "mylos::gemm NT 20 4 4 float float bias_gelu = onednn";
  two.profile[{SpanKind::product, longer, {}}] = {1, 1.0, product_work(*parse_gemm_label(longer))};
  const Breakdown breakdown = make_breakdown(products, {two}, {.flops = 1.0, .bandwidth = 1.0});
  EXPECT_EQ(row(breakdown, "dense/forward by onednn").calls, 3.0);
  EXPECT_EQ(row(breakdown, "dense/forward by onednn").work->flops, (10 + 10 + 20) * 32.0);
}

TEST(StepBreakdown, SaysHowMuchOfTheStepIsAccounted) {
  const Breakdown breakdown = make_breakdown(products, {step()}, {.flops = 1.0, .bandwidth = 1.0});
  EXPECT_EQ(breakdown.seconds, 10.0);
  EXPECT_EQ(breakdown.in_kernels, 0.8);
  EXPECT_EQ(breakdown.accounted, 0.9);
  ASSERT_EQ(breakdown.host.size(), 1u);
  EXPECT_EQ(breakdown.host[0].name, "mylos::TrainingStep::pass");
  EXPECT_FALSE(breakdown.host[0].flops);
}

TEST(StepBreakdown, TakesMediansOverSteps) {
  std::vector<ProfiledStep> steps(3, step());
  steps[0].profile.at({SpanKind::kernel, "mylos::optimizer::adamw", {}}).seconds = 5.0;
  steps[1].profile.at({SpanKind::kernel, "mylos::optimizer::adamw", {}}).seconds = 4.0;
  const Breakdown breakdown = make_breakdown(products, steps, {.flops = 1.0, .bandwidth = 1.0});
  EXPECT_EQ(row(breakdown, "mylos::optimizer::adamw").seconds, 4.0);
  EXPECT_EQ(breakdown.in_kernels, 1.0);
}

TEST(StepBreakdown, AKernelThatReportsNoWorkIsShownWithout) {
  ProfiledStep unknown = step();
  unknown.profile[{SpanKind::kernel, "mylos::new", {}}] = {1, 0.5, std::nullopt};
  unknown.profile[{SpanKind::kernel, "mylos::new", product}] = {1, 0.25, std::nullopt};
  const Ceilings ceilings{.flops = 1.0, .bandwidth = 1.0};
  const Breakdown breakdown = make_breakdown(products, {unknown}, ceilings);
  EXPECT_FALSE(row(breakdown, "mylos::new").flops);
  EXPECT_FALSE(row(breakdown, "mylos::new, in a product").roofline);
  EXPECT_TRUE(to_json(breakdown, ceilings)["kernels"].back()["gflops"].is_null());
}

TEST(StepBreakdown, IsPrinted) {
  const Ceilings ceilings{.flops = 2e9, .bandwidth = 3e9};
  const std::string text = to_text(make_breakdown(products, {step()}, ceilings), ceilings);
  EXPECT_NE(text.find("roofline: 2.0 GFLOP/s of the fastest product, 3.0 GB/s of a triad"), std::string::npos) << text;
  EXPECT_NE(text.find("sum: 80.0 % in kernels, 90.0 % including work of the host, of 10000.000 ms"), std::string::npos)
      << text;
  EXPECT_NE(tests::error_of([&] { make_breakdown(products, {}, ceilings); }).find("no steps"), std::string::npos);
}

using nlohmann::json;
using ::testing::HasSubstr;

/// Returns these rows as `mylos bench step --breakdown --json` prints them.
json printed(const std::vector<BreakdownRow>& rows) {
  return {{breakdown_key, json(to_json({.kernels = rows, .host = {}}, {.flops = 2e9, .bandwidth = 3e9}))}};
}

BreakdownRow known() {
  return {.name = "mylos::optimizer::adamw",
          .calls = 2.0,
          .seconds = 0.5,
          .share = 0.25,
          .work = Work{.flops = 4e9, .bytes = 8e9},
          .flops = 8e9,
          .bytes = 16e9,
          .roofline = 0.75};
}

TEST(BreakdownJson, IsReadAsItIsWritten) {
  const BreakdownRow unknown{.name = "mylos::new", .calls = 1.0, .seconds = 0.125, .share = 0.0625};
  const std::vector<BreakdownRow> rows = kernel_rows(printed({known(), unknown}), "kernels.json");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "mylos::optimizer::adamw");
  EXPECT_EQ(rows[0].calls, 2.0);
  EXPECT_EQ(rows[0].seconds, 0.5);
  EXPECT_EQ(rows[0].share, 0.25);
  EXPECT_EQ(rows[0].work->flops, 4e9);
  EXPECT_EQ(rows[0].work->bytes, 8e9);
  EXPECT_EQ(rows[0].flops, 8e9);
  EXPECT_EQ(rows[0].bytes, 16e9);
  EXPECT_EQ(rows[0].roofline, 0.75);
  EXPECT_EQ(rows[1].share, 0.0625);
  EXPECT_FALSE(rows[1].work || rows[1].flops || rows[1].bytes || rows[1].roofline);
}

TEST(BreakdownJson, AnythingElseIsAnErrorThatNamesThePlace) {
  const auto error = [](const json& file) { return tests::error_of([&] { kernel_rows(file, "kernels.json"); }); };
  EXPECT_EQ(error({{"seconds", 1}}), "kernels.json: the key 'breakdown' is missing");
  json renamed = printed({known()});
  renamed[breakdown_key]["kernels"][0].erase("share_of_step");
  EXPECT_EQ(error(renamed), "kernels.json: breakdown.kernels[0]: the key 'share_of_step' is missing");
  json text = printed({known()});
  text[breakdown_key]["kernels"][0]["share_of_roofline"] = "much";
  EXPECT_THAT(error(text), HasSubstr("breakdown.kernels[0].share_of_roofline: expected number, found string"));
}

}  // namespace
}  // namespace mylos::app
