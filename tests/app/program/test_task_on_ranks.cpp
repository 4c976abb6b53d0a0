#include "app/program/task_on_ranks.hpp"

#include "core/base/error.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace mylos::app {
namespace {

/// A task of which only the attention is known.
class AttentionTask final : public tasks::Task {
 public:
  explicit AttentionTask(std::optional<AttentionKernel> kernel) : kernel_(kernel) {}

  std::optional<AttentionUse> attention() const override {
    if (!kernel_) return std::nullopt;
    return AttentionUse{.shape = {.heads = 2, .key_value_heads = 2, .head_size = 8, .kernel = *kernel_}};
  }
  void set_attention(AttentionKernel kernel) override { kernel_ = kernel; }

  const nn::Model& model() const override { fail("no model"); }
  void initial_values(const train::TensorWriter&) const override {}
  std::size_t steps_per_epoch() const override { return 1; }
  std::vector<std::size_t> global_batch(std::size_t) const override { return {0}; }
  std::size_t rows_of(std::size_t) const override { return 1; }
  double weight(std::span<const std::size_t>) const override { return 1.0; }
  void assemble(std::size_t, std::span<const std::size_t>, std::span<const std::uint32_t>, Batch&) const override {}
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const std::filesystem::path&) const override {}
  const train::ModelExporter* exporter() const override { return nullptr; }
  std::vector<tasks::DataChecksum> data_checksums() const override { return {}; }
  std::string model_text() const override { return {}; }
  std::string train_text() const override { return {}; }
  std::string dev_text() const override { return {}; }
  tasks::EvaluatedSamples evaluated() const override { return {}; }
  std::string results_text() const override { return {}; }

 private:
  std::optional<AttentionKernel> kernel_;
};

class ChooseAttention : public testing::Test {
 protected:
  void SetUp() override { run_.task.train = "questions.json"; }
  std::optional<AttentionKernel> chosen(std::optional<AttentionKernel> begun) {
    AttentionTask task(begun);
    choose_attention(*parallel::make_self_communicator(), run_, task,
                     [this](const std::string& line) { notices_.push_back(line); });
    const std::optional<AttentionUse> use = task.attention();
    return use ? std::optional(use->shape.kernel) : std::nullopt;
  }

  tasks::RunConfig run_;
  std::vector<std::string> notices_;
};

/// In float only the portable kernel is a candidate, with any device.
TEST_F(ChooseAttention, MakesTheModelWithTheKernelThatTheRanksHave) {
  EXPECT_EQ(chosen(AttentionKernel::cudnn), AttentionKernel::portable);
  EXPECT_EQ(chosen(AttentionKernel::portable), AttentionKernel::portable);
  EXPECT_THAT(notices_, testing::IsEmpty()) << "the portable kernel is not worth a line";
}

TEST_F(ChooseAttention, EndsARunWhoseKernelFailsOnThisDevice) {
  run_.task.attention = AttentionKernel::cudnn;
  EXPECT_THAT(
      tests::error_of([&] { chosen(AttentionKernel::cudnn); }),
      testing::AllOf(testing::StartsWith("--attention cudnn: "), testing::EndsWith("; use --attention portable")));
}

TEST_F(ChooseAttention, LeavesModelsWithoutAttention) { EXPECT_EQ(chosen(std::nullopt), std::nullopt); }

}  // namespace
}  // namespace mylos::app
