#include "core/kernels/attention/cudnn_attention.hpp"

#include "core/batch.hpp"
#include "core/kernels/attention/attention_candidates.hpp"
#include "core/kernels/attention/attention_measure.hpp"
#include "core/kernels/attention/attention_proof.hpp"
#include "core/kernels/attention/cudnn_attention_sizes.hpp"
#include "core/kernels/cuda/cudnn_library.hpp"
#include "tests/core/kernels/attention_twin.hpp"
#include "tests/core/kernels/cudnn_stand_in/attention_stand_in.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

/// Tests attention by cuDNN with a stand-in for its graphs, which computes naively from the arrays that it is given.
namespace mylos::attention {
namespace {

using stand_in::attention_state;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::AttentionCase;
using tests::AttentionProblem;
using tests::error_of;
using tests::to_host;

const char* chosen_version() { return std::getenv("CUDNN_STAND_IN_VERSION"); }

class CudnnAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    if (chosen_version() != nullptr) GTEST_SKIP() << "the library is refused in this process";
    attention_state() = {};
  }
  void TearDown() override { EXPECT_EQ(attention_state().mistake, ""); }
};

template <class T>
void run(AttentionProblem<T>& problem) {
  problem.shape.kernel = AttentionKernel::cudnn;
  problem.forward();
  problem.backward();
}

const std::vector<AttentionCase> cases = {{"Plain", 2, 2, 32, false, 0.0f, {7, 40, 1}},
                                          {"Causal", 1, 1, 16, true, 0.0f, {1, 70, 32}},
                                          {"GroupedCausal", 4, 2, 8, true, 0.0f, {50, 17, 3, 9, 20}},
                                          {"Window", 4, 2, 8, true, 0.0f, {50, 17, 3, 9, 20}, 7}};

/// The first test, because nothing is prepared once half of the graphs that are kept have been made.
TEST_F(CudnnAttention, PreparedGraphsAreThoseOfThePasses) {
  AttentionProblem<half> problem({"", 2, 1, 24, true, 0.0f, {65, 3, 2}});
  problem.shape.kernel = AttentionKernel::cudnn;
  const ExecutionSpace space;
  const auto batches = [] { return std::vector{BatchShape{.samples = 3, .rows = 70, .longest = 65}}; };
  prepare_attention<half>(space, problem.shape, batches, false);
  EXPECT_EQ(attention_state().made.size(), 1u) << "for evaluations";
  prepare_attention<half>(space, problem.shape, batches, true);
  EXPECT_EQ(attention_state().made.size(), 2u);
  run(problem);
  EXPECT_EQ(attention_state().made.size(), 2u);
  problem.shape.kernel = AttentionKernel::portable;
  prepare_attention<half>(
      space, problem.shape, []() -> std::vector<BatchShape> { throw std::logic_error("not asked for"); }, true);
  EXPECT_EQ(attention_state().made.size(), 2u);
}

/// On GPUs of compute capability 9.0, and of 8.0, where statistics are copied.
TEST_F(CudnnAttention, EqualsNaiveTwin) {
  for (const int capability : {90, 80}) {
    attention_state().capability = capability;
    for (const AttentionCase& c : cases) {
      SCOPED_TRACE(c.name);
      tests::compare_with_naive<bfloat16>(c, AttentionKernel::cudnn);
      tests::compare_with_naive<half>(c, AttentionKernel::cudnn);
    }
  }
  EXPECT_EQ(attention_state().forward, 4 * cases.size());
  EXPECT_EQ(attention_state().backward, 4 * cases.size());
}

TEST_F(CudnnAttention, StatisticsAreKeptByTokensAndHeads) {
  for (const int capability : {90, 80}) {
    attention_state().capability = capability;
    AttentionProblem<half> problem({"", 2, 1, 8, false, 0.0f, {5, 3}});
    problem.shape.kernel = AttentionKernel::cudnn;
    problem.forward();
    const std::vector<double> expected = tests::naive_attention(problem).log_sum_exp,
                              got = to_host(problem.log_sum_exp);
    for (std::size_t row = 0; row < 8; ++row) {
      for (std::size_t head = 0; head < 2; ++head) {
        EXPECT_NEAR(got[row * 2 + head], expected[head * 8 + row], 1e-3) << capability << ": " << row << ", " << head;
      }
    }
  }
}

/// Lengths within the same bounds share the graphs of both passes.
TEST_F(CudnnAttention, GraphsAreMadeForBounds) {
  const auto pass = [](std::vector<std::size_t> lengths) {
    AttentionProblem<bfloat16> problem({"", 1, 1, 24, false, 0.0f, std::move(lengths)});
    run(problem);
  };
  pass({65, 3, 2, 2, 2, 2, 2, 2, 2});
  ASSERT_EQ(attention_state().made.size(), 2u);
  const cudnn::AttentionKey& key = attention_state().made.back();
  EXPECT_EQ(key.pass, cudnn::AttentionPass::backward);
  EXPECT_EQ(key.sequences, 10u);
  EXPECT_EQ(key.longest, 128u);
  EXPECT_EQ(key.columns(), 3 * 24u);
  EXPECT_EQ(key.capability, 90);
  EXPECT_TRUE(key.has_packed_statistics);
  pass({128, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(attention_state().made.size(), 2u);
  pass({129, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(attention_state().made.size(), 4u);
  AttentionProblem<bfloat16> windowed({"", 1, 1, 24, true, 0.0f, {65}, 100});
  run(windowed);
  EXPECT_EQ(attention_state().made.back().window, 100);
  windowed.shape.window = 128;  // as many as a sequence of the graph has
  run(windowed);
  EXPECT_EQ(attention_state().made.back().window, 0);
  EXPECT_EQ(attention_state().made.size(), 8u);
  attention_state().capability = 86;
  pass({65, 3, 2, 2, 2, 2, 2, 2, 2});
  EXPECT_EQ(attention_state().made.size(), 10u);
  EXPECT_FALSE(attention_state().made.back().has_packed_statistics);
}

TEST_F(CudnnAttention, NeedsNoMoreScratchThanPlanned) {
  for (const int capability : {80, 90}) {
    attention_state().capability = capability;
    AttentionProblem<half> problem({"", 3, 1, 40, false, 0.0f, {70, 5, 5}});
    problem.shape.kernel = AttentionKernel::cudnn;
    // cudnn-frontend adds to cuDNN's workspace: sums of dout * out, and dquery in float, on 8.0 twice.
    attention_state().workspace = 3 * 128 * 3 * (1 + (capability == 80 ? 2 : 1) * 40) * sizeof(float);
    attention_state().scratch = 0;
    run(problem);
    EXPECT_GT(attention_state().scratch, attention_state().workspace);
    EXPECT_LE(attention_state().scratch,
              attention_backward_scratch(problem.shape, 3, 70, {.architecture = nvidia_gpu(capability)}));
  }
}

TEST_F(CudnnAttention, AnEmptyBatchIsNotAPass) {
  AttentionProblem<half> problem({"", 1, 1, 48, false, 0.0f, {}});
  run(problem);
  EXPECT_TRUE(attention_state().made.empty());
}

TEST_F(CudnnAttention, DropoutIsRefused) {
  AttentionProblem<bfloat16> problem({"", 1, 1, 32, false, 0.1f, {5}});
  problem.shape.kernel = AttentionKernel::cudnn;
  EXPECT_THAT(error_of([&] { problem.forward(); }), HasSubstr("attention by cuDNN: it has no dropout"));
  EXPECT_THAT(error_of([&] { problem.backward(); }), HasSubstr("attention by cuDNN: it has no dropout"));
}

TEST_F(CudnnAttention, ArraysThatItCannotReadAreRefused) {
  AttentionProblem<half> problem({"", 1, 1, 32, false, 0.0f, {5}});
  problem.shape.kernel = AttentionKernel::cudnn;
  const Vector<half> memory("memory", 5 * 32 + 1);
  problem.out = Matrix<half>(memory.data() + 1, 5, 32);
  EXPECT_THAT(error_of([&] { problem.forward(); }), HasSubstr("does not begin at a multiple of 16 bytes"));
  problem.out = Kokkos::subview(Matrix<half>("wider", 5, 64), Kokkos::ALL, Kokkos::make_pair(0, 32));
  EXPECT_THAT(error_of([&] { problem.forward(); }), HasSubstr("gaps between its rows"));
}

TEST_F(CudnnAttention, ErrorsAreOneLineThatNamesThePass) {
  AttentionProblem<half> problem({"", 12, 4, 72, false, 0.0f, {50, 60, 70}});
  problem.shape.kernel = AttentionKernel::cudnn;
  attention_state().refusal = "no engine\nfor this\n";
  const auto of_forward = [&] { return error_of([&] { problem.forward(); }); };
  EXPECT_EQ(
      of_forward(),
      "attention by cuDNN 9.19.0: forward pass over 3 sequences of up to 128 tokens, 12 heads (4 of keys) of 72 in "
      "half: no engine for this; use another `attention`");
  attention_state() = {};
  attention_state().failure = "execution failed";
  EXPECT_THAT(of_forward(), AllOf(HasSubstr("in half: execution failed; use another"), Not(HasSubstr("\n"))));
  attention_state() = {};
  AttentionProblem<half> small({"", 1, 1, 8, false, 0.0f, {5}});
  small.shape.kernel = AttentionKernel::cudnn;
  EXPECT_EQ(error_of([&] { small.forward(); }), "(nothing was thrown)");
}

TEST_F(CudnnAttention, ObstaclesNameWhatIsMissing) {
  constexpr AttentionKernel kernel = AttentionKernel::cudnn;
  for (const std::size_t size : {8u, 64u, 72u, 128u})
    EXPECT_EQ(attention_obstacle(kernel, Precision::float16, size), "");
  for (const std::size_t size : {0u, 4u, 20u, 136u}) {
    EXPECT_THAT(attention_obstacle(kernel, Precision::bfloat16, size),
                HasSubstr("cuDNN takes heads of 8, 16, ... 128"));
  }
  EXPECT_EQ(attention_obstacle(kernel, Precision::float32), "attention by cuDNN takes bfloat16 and half, not float");
  for (const int capability : {80, 89, 90, 100}) {
    EXPECT_EQ(attention_obstacle(kernel, Precision::bfloat16, 64, nvidia_gpu(capability)), "") << capability;
  }
  EXPECT_EQ(attention_obstacle(kernel, Precision::bfloat16, 64, nvidia_gpu(70)),
            "attention by cuDNN needs a GPU of compute capability 8.0 or later, and this one has 7.0");
}

/// The stand-in computes on the CPU.
TEST_F(CudnnAttention, IsTimedBesideTheOthers) {
  const std::vector<AttentionKernel> kernels = {AttentionKernel::portable, AttentionKernel::cudnn};
  const TimedAttention attention{
      .shape = {.heads = 2, .key_value_heads = 1, .head_size = 16, .scale = 0.25f, .causal = true},
      .precision = Precision::bfloat16,
      .lengths = {9, 33}};
  std::vector<std::string> notices;
  const auto measure = [&] {
    return measure_attention(ExecutionSpace(), kernels, attention, [&](const auto& line) { notices.push_back(line); });
  };
  const AttentionSeconds seconds = measure();
  EXPECT_GT(seconds.at(AttentionKernel::portable), 0.0);
  EXPECT_GT(seconds.at(AttentionKernel::cudnn), 0.0);
  EXPECT_EQ(attention_state().forward, attention_state().backward);
  EXPECT_GE(attention_state().forward, 4u) << "a warm-up and a few passes";
  EXPECT_THAT(notices, testing::IsEmpty());
  attention_state().failure = "execution\nfailed";
  const AttentionSeconds without = measure();
  EXPECT_EQ(without.size(), 1u);
  EXPECT_EQ(fastest_attention(kernels, without), AttentionKernel::portable);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices.front(), AllOf(testing::StartsWith("attention: cudnn is left out: "),
                                     HasSubstr("execution failed"), Not(HasSubstr("\n"))));
}

/// Unless the run has dropout or is deterministic.
TEST_F(CudnnAttention, IsACandidateFromComputeCapability80On) {
  AttentionUse use{.shape = {.head_size = 64}, .precision = Precision::bfloat16};
  for (const int capability : {80, 90}) {
    EXPECT_THAT(attention_candidates(use, nvidia_gpu(capability)),
                testing::ElementsAre(AttentionKernel::cudnn, AttentionKernel::portable));
  }
  EXPECT_THAT(attention_candidates(use, nvidia_gpu(70)), testing::ElementsAre(AttentionKernel::portable));
  use.dropout = 0.1;
  EXPECT_THAT(attention_candidates(use, nvidia_gpu(90)), testing::ElementsAre(AttentionKernel::portable));
  use.dropout = 0.0;
  use.deterministic = true;
  EXPECT_THAT(attention_candidates(use, nvidia_gpu(90)), testing::ElementsAre(AttentionKernel::portable));
}

TEST_F(CudnnAttention, ProvesItself) {
  const AttentionUse use{.shape = {.heads = 2, .key_value_heads = 1, .head_size = 16, .scale = 0.25f, .causal = true},
                         .precision = Precision::bfloat16};
  const auto proof = [&] { return prove_attention(ExecutionSpace(), AttentionKernel::cudnn, use); };
  EXPECT_EQ(proof().fault, "");
  EXPECT_EQ(proof().kernel, AttentionKernel::cudnn);
  attention_state().failure = "execution\nfailed";
  EXPECT_THAT(proof().fault, AllOf(HasSubstr("in bfloat16: execution failed"), Not(HasSubstr("\n"))));
  EXPECT_EQ(proof().kernel, AttentionKernel::cudnn);
}

/// Runs with CUDNN_STAND_IN_VERSION=90500 and 91600.
TEST(CudnnAttentionLibrary, ThatIsTooOldIsOneLine) {
  if (chosen_version() == nullptr) GTEST_SKIP() << "needs CUDNN_STAND_IN_VERSION";
  const auto obstacle = [](int capability) {
    return attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16, 64, nvidia_gpu(capability));
  };
  if (std::string(chosen_version()) == "90500") {
    EXPECT_EQ(obstacle(90),
              "cuDNN 9.5.0 is too old: attention needs 9.6.0 or later; load it, or do without: `attention` auto");
    return;
  }
  EXPECT_EQ(obstacle(90), "");
  EXPECT_EQ(
      obstacle(86),
      "cuDNN 9.16.0 is too old: attention on GPUs of compute capability 8.6 needs 9.18.1 or later; load it, or do "
      "without: `attention` auto");
}

}  // namespace
}  // namespace mylos::attention
