#include "core/kernels/attention/attention_measure.hpp"

#include "core/base/error.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace mylos {
namespace {

using Kernel = AttentionKernel;
using Kernels = std::vector<Kernel>;
using testing::ElementsAre;
using testing::IsEmpty;

/// A clock for kernels with known times; a kernel without times throws.
class FakeAttentionTimer {
 public:
  explicit FakeAttentionTimer(std::map<Kernel, std::vector<double>> times) : times_(std::move(times)) {}

  AttentionSeconds time(const Kernels& kernels) {
    return time_attention(
        kernels,
        [this](Kernel kernel) {
          order.push_back(kernel);
          const std::vector<double>& times = times_[kernel];
          if (times.empty()) fail("no engine\nfor this\n");
          return times[calls[kernel]++ % times.size()];
        },
        [this](const std::string& line) { notices.push_back(line); });
  }

  std::map<Kernel, std::size_t> calls;
  Kernels order;
  std::vector<std::string> notices;

 private:
  std::map<Kernel, std::vector<double>> times_;
};

const Kernels two = {Kernel::tensor_cores, Kernel::cudnn};

TEST(AttentionTiming, TakesTheMedianAfterAWarmUp) {
  FakeAttentionTimer timer({{Kernel::tensor_cores, {0.1, 0.5, 3.0, 1.0, 2.0, 100.0}}, {Kernel::cudnn, {50.0, 4.0}}});
  // The first call of each kernel is not counted: of 0.5, 3, 1, 2 and 100 the median is 2.
  EXPECT_EQ(timer.time(two), (AttentionSeconds{{Kernel::tensor_cores, 2.0}, {Kernel::cudnn, 4.0}}));
  EXPECT_EQ(timer.calls[Kernel::tensor_cores], timer.calls[Kernel::cudnn]);
  for (std::size_t i = 0; i < timer.order.size(); ++i) EXPECT_EQ(timer.order[i], two[i % 2]) << "not in turns: " << i;
  EXPECT_THAT(timer.notices, IsEmpty());
}

TEST(AttentionTiming, LeavesOutAKernelThatThrowsWithOneLine) {
  FakeAttentionTimer timer({{Kernel::tensor_cores, {1.0}}});
  EXPECT_EQ(timer.time(two), (AttentionSeconds{{Kernel::tensor_cores, 1.0}}));
  EXPECT_THAT(timer.notices, ElementsAre("attention: cudnn is left out: no engine for this"));
  FakeAttentionTimer of_none({});
  EXPECT_THAT(of_none.time(two), IsEmpty());
  EXPECT_EQ(of_none.notices.size(), 2u);
}

TEST(AttentionChoice, IsTheFastest) {
  const auto fastest = [](const AttentionSeconds& seconds) { return fastest_attention(two, seconds); };
  EXPECT_EQ(fastest({{Kernel::tensor_cores, 1.0}, {Kernel::cudnn, 0.9}}), Kernel::cudnn);
  EXPECT_EQ(fastest({{Kernel::tensor_cores, 1.0}, {Kernel::cudnn, 1.1}}), Kernel::tensor_cores);
  EXPECT_EQ(fastest({{Kernel::cudnn, 1.1}}), Kernel::cudnn) << "the other one was left out";
  EXPECT_EQ(fastest({{Kernel::tensor_cores, 1.1}}), Kernel::tensor_cores);
  EXPECT_EQ(fastest({}), Kernel::tensor_cores) << "none could be timed";
}

TEST(AttentionChoice, IsTheFirstWhereTheDifferenceIsNoise) {
  EXPECT_EQ(fastest_attention(two, {{Kernel::tensor_cores, 1.0}, {Kernel::cudnn, 0.98}}), Kernel::tensor_cores);
}

/// The arrays are those of one layer, and are freed.
TEST(AttentionTiming, OfRealPassesNeedsTheArraysOfOneLayer) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    const TimedAttention attention{
        .shape = {.heads = 4, .key_value_heads = 2, .head_size = 8, .scale = 0.3f, .causal = true},
        .precision = precision,
        .lengths = {7, 30, 1}};
    const tests::KokkosRecorder recorder;
    const AttentionSeconds seconds = measure_attention(ExecutionSpace(), Kernels{Kernel::portable}, attention,
                                                       [](const std::string& line) { ADD_FAILURE() << line; });
    ASSERT_EQ(seconds.size(), 1u);
    EXPECT_GT(seconds.at(Kernel::portable), 0.0);
    const std::size_t rows = 38, element = precision == Precision::float32 ? 4 : 2;
    const std::size_t of_layer = 2 * rows * (64 + 32) * element + 2 * 4 * rows * sizeof(float);
    const std::size_t of_sequences = 4 * sizeof(std::size_t) + 3 * sizeof(std::uint32_t);
    std::size_t bytes = 0;
    for (const auto& allocation : recorder.allocations()) {
      if (allocation.label == "mylos::Attention::measure") bytes += allocation.bytes;
    }
    EXPECT_GE(bytes, of_layer + of_sequences);
    EXPECT_LE(bytes, of_layer + of_sequences + 8 * 128) << "more than the views' headers";
  }
}

}  // namespace
}  // namespace mylos
