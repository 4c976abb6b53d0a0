#include "tasks/interface/attention_choice.hpp"

#include "core/base/setting_error.hpp"
#include "tests/support/temporary.hpp"
#include "tests/tasks/recorded_runs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace mylos::tasks {
namespace {

AttentionUse use_of(Precision precision, std::size_t head_size = 64, double dropout = 0.0) {
  return {.shape = {.head_size = head_size}, .precision = precision, .dropout = dropout};
}

TEST(AttentionChoice, IsThatOfTheDeviceIfNoneIsAskedFor) {
  const AttentionUse use = use_of(Precision::bfloat16);
  EXPECT_EQ(attention_kernel({}, use), attention_candidates(use, architecture_in_use()).front());
  EXPECT_EQ(attention_kernel({}, use_of(Precision::float32)), AttentionKernel::portable);
}

TEST(AttentionChoice, IsTheKernelThatIsAskedForOrAnError) {
  TaskConfig configured;
  configured.attention = AttentionKernel::portable;
  EXPECT_EQ(attention_kernel(configured, use_of(Precision::bfloat16, 64, 0.1)), AttentionKernel::portable);
  for (const AttentionKernel kernel : {AttentionKernel::tensor_cores, AttentionKernel::cudnn}) {
    configured.attention = kernel;
    EXPECT_THAT(tests::error_of([&] { attention_kernel(configured, use_of(Precision::float32)); }),
                testing::AllOf(testing::StartsWith(fmt::format("--attention {}: ", to_string(kernel))),
                               testing::EndsWith("; use --attention portable")));
  }
}

constexpr const char* dropout_is_missing =
    "--attention cudnn: it has no dropout, and that of this run is 0.1; use --dropout 0, or leave --attention out";

/// With the library, dropout is what is refused; without it, the library is missing.
TEST(AttentionChoice, OfCudnnIsWithoutDropout) {
  TaskConfig configured;
  configured.attention = AttentionKernel::cudnn;
  const std::string obstacle =
      attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16, 64, architecture_in_use());
  EXPECT_EQ(tests::error_of([&] { attention_kernel(configured, use_of(Precision::bfloat16, 64, 0.1)); }),
            obstacle.empty() ? dropout_is_missing : "--attention cudnn: " + obstacle + "; use --attention portable");
}

TEST(AttentionChoice, IsDescribedWithTheTimesThatItWasMadeBy) {
  EXPECT_EQ(attention_line({AttentionKernel::portable}), "");
  EXPECT_EQ(attention_line({AttentionKernel::tensor_cores}), "attention: tensor-cores; --attention selects another");
  EXPECT_EQ(attention_line({AttentionKernel::cudnn,
                            {{AttentionKernel::tensor_cores, 1.5e-4}, {AttentionKernel::cudnn, 1.2346e-4}}}),
            "attention: cudnn (forward and backward pass of a layer: tensor-cores 0.15 ms, cudnn 0.123 ms); "
            "--attention selects another");
}

TEST(AttentionPlan, IsThatOfTheGpu) {
  const auto planned = [](const GpuArchitecture& device, const AttentionUse& use) {
    TaskConfig configured;
    configured.planned_device = device;
    return planned_attention(configured, use);
  };
  for (const GpuArchitecture& device : {nvidia_gpu(80), nvidia_gpu(90)}) {
    EXPECT_EQ(planned(device, use_of(Precision::bfloat16)), AttentionKernel::cudnn) << "needs the most memory";
    EXPECT_EQ(planned(device, use_of(Precision::bfloat16, 64, 0.1)), AttentionKernel::tensor_cores);
  }
  EXPECT_EQ(planned(nvidia_gpu(70), use_of(Precision::float16)), AttentionKernel::tensor_cores);
  EXPECT_EQ(planned(nvidia_gpu(90), use_of(Precision::float32)), AttentionKernel::portable);
  EXPECT_EQ(planned(nvidia_gpu(90), use_of(Precision::float16, 44)), AttentionKernel::portable);
  EXPECT_EQ(planned(nvidia_gpu(70), use_of(Precision::bfloat16)), AttentionKernel::portable);
  EXPECT_EQ(planned({}, use_of(Precision::bfloat16)), AttentionKernel::portable);
  EXPECT_EQ(planned(amd_gpu(0x90a), use_of(Precision::bfloat16)), AttentionKernel::tensor_cores);
  EXPECT_EQ(planned(amd_gpu(0x942), use_of(Precision::float32)), AttentionKernel::portable);
}

TEST(AttentionPlan, HasTheKernelThatIsAskedForOrIsAnError) {
  const auto planned = [](AttentionKernel kernel, const GpuArchitecture& device, const AttentionUse& use) {
    TaskConfig chosen;
    chosen.attention = kernel;
    chosen.planned_device = device;
    return planned_attention(chosen, use);
  };
  const AttentionUse use = use_of(Precision::float16);
  EXPECT_EQ(planned(AttentionKernel::portable, nvidia_gpu(90), use), AttentionKernel::portable);
  EXPECT_EQ(planned(AttentionKernel::cudnn, nvidia_gpu(90), use), AttentionKernel::cudnn);
  EXPECT_EQ(planned(AttentionKernel::tensor_cores, nvidia_gpu(70), use), AttentionKernel::tensor_cores);
  EXPECT_EQ(tests::error_of([&] { planned(AttentionKernel::cudnn, nvidia_gpu(70), use); }),
            "--attention cudnn: attention by cuDNN needs a GPU of compute capability 8.0 or later, and this one has "
            "7.0; use --attention portable");
  EXPECT_EQ(
      tests::error_of([&] { planned(AttentionKernel::cudnn, nvidia_gpu(90), use_of(Precision::float16, 64, 0.1)); }),
      dropout_is_missing);
  EXPECT_EQ(tests::error_of([&] { planned(AttentionKernel::tensor_cores, {}, use); }),
            "--attention tensor-cores: it needs a GPU; use --attention portable");
}

/// What the kernel of a recorded run is selected from.
class AttentionOfATask : public testing::TestWithParam<tests::RecordedRun (*)()> {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
  }
  tests::RecordedRun recorded_ = GetParam()();
};

TEST_P(AttentionOfATask, IsSelectedFromProvenCandidates) {
  const auto task = recorded_.task();
  RunConfig run = recorded_.run;
  run.task.recorded_attention = AttentionKernel::cudnn;
  run.task.attention_cache = "/cache";
  const std::optional<train::AttentionRequest> request = attention_request(run, *task, 1);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->candidates.back(), AttentionKernel::portable);
  EXPECT_EQ(request->recorded, AttentionKernel::cudnn);
  EXPECT_EQ(request->cache, "/cache");
  EXPECT_FALSE(request->deterministic);
  const TimedAttention timed = request->timed();
  EXPECT_EQ(timed.shape.columns(), task->attention()->shape.columns());
  EXPECT_EQ(timed.precision, run.engine.precision);
  EXPECT_EQ(timed.lengths, train::first_lengths(*task, run.engine, 1));
  EXPECT_FALSE(timed.lengths.empty());
  EXPECT_FALSE(request->asked);
  EXPECT_EQ(request->prove(AttentionKernel::portable).fault, "");
  run.task.attention = AttentionKernel::cudnn;
  const std::optional<train::AttentionRequest> asked = attention_request(run, *task, 1);
  EXPECT_TRUE(asked->asked);
  EXPECT_THAT(asked->candidates, testing::ElementsAre(AttentionKernel::cudnn));
  run.task.attention.reset();
  run.task.train.clear();
  EXPECT_TRUE(attention_request(run, *task, 1)->deterministic) << "evaluation takes the first without timing";
}

TEST_P(AttentionOfATask, HasTheRequirementsOfTheRun) {
  RunConfig run = recorded_.run;
  run.engine.parallel.deterministic = true;
  const auto task = make_with_data(recorded_.kind, run, [](const std::string&) {});
  EXPECT_TRUE(attention_request(run, *task, 1)->deterministic);
  EXPECT_EQ(task->attention()->precision, run.engine.precision);
  EXPECT_EQ(task->attention()->shape.kernel, AttentionKernel::portable);
}

TEST(AttentionOfBert, HasItsDropoutInTraining) {
  const tests::RecordedRun recorded = tests::recorded_examples();
  if (!recorded.obstacle.empty()) GTEST_SKIP() << recorded.obstacle;
  const auto dropout = [&](const RunConfig& run) {
    return recorded.kind.make(FileReader(), run, [](const std::string&) {})->attention()->dropout;
  };
  RunConfig run = recorded.run;
  run.task.dropout = 0.25;
  EXPECT_EQ(dropout(run), 0.25);
  run.task.train.clear();
  EXPECT_EQ(dropout(run), 0.0);
}

/// On a host no other kernel could compute, but the model is made and its kernel recorded.
TEST_P(AttentionOfATask, IsThatOfTheModelAfterItIsSet) {
  const auto task = recorded_.task();
  const std::size_t size = task->model().table().size();
  task->set_attention(AttentionKernel::cudnn);
  EXPECT_EQ(task->model().table().size(), size);
  EXPECT_EQ(task->attention()->shape.kernel, AttentionKernel::cudnn);
  EXPECT_EQ(task->resolved()["attention"], "cudnn");
  const BatchShape shape{.samples = 8, .rows = 800, .longest = 384};
  const auto scratch = [&] {
    return task->model().scratch_bytes(shape, ParameterStore::Purpose::training, {.threads = 4});
  };
  const std::size_t of_cudnn = scratch();
  task->set_attention(AttentionKernel::tensor_cores);
  EXPECT_LT(scratch(), of_cudnn) << "the model has the kernel";
  const bool drops = task->attention()->dropout > 0.0;
  EXPECT_EQ(scratch() > 0, drops) << "the bits of dropout";
  EXPECT_EQ(task->model().scratch_bytes(shape, ParameterStore::Purpose::inference, {.threads = 4}), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AttentionOfATask, testing::Values(tests::recorded_examples, tests::recorded_chess),
                         [](const auto& info) { return info.param().name; });

/// A task of which only the attention is known.
class AttentionTask final : public Task {
 public:
  explicit AttentionTask(std::optional<AttentionKernel> kernel) : kernel_(kernel) {}

  std::optional<AttentionUse> attention() const override {
    if (!kernel_) return std::nullopt;
    return AttentionUse{.shape = {.heads = 2, .key_value_heads = 2, .head_size = 8, .kernel = *kernel_}};
  }
  void set_attention(AttentionKernel kernel) override { kernel_ = kernel; }

  const nn::Model& model() const override { fail("no model"); }
  void initial_values(const FileReader&, const train::TensorWriter&) const override {}
  std::size_t steps_per_epoch() const override { return 1; }
  std::vector<std::size_t> global_batch(std::size_t) const override { return {0}; }
  std::size_t rows_of(std::size_t) const override { return 1; }
  double weight(std::span<const std::size_t>) const override { return 1.0; }
  void assemble(std::size_t, std::span<const std::size_t>, std::span<const std::uint32_t>, Batch&) const override {}
  train::Evaluation* evaluation() const override { return nullptr; }
  void write_results(const std::filesystem::path&) const override {}
  const train::ModelExporter* exporter() const override { return nullptr; }
  std::vector<DataChecksum> data_checksums() const override { return {}; }
  std::string model_text() const override { return {}; }
  std::string train_text() const override { return {}; }
  std::string dev_text() const override { return {}; }
  EvaluatedSamples evaluated() const override { return {}; }
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

  RunConfig run_;
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
  EXPECT_THAT(tests::error_of([&] { chosen(AttentionKernel::cudnn); }),
              testing::AllOf(testing::StartsWith(setting("attention", "cudnn") + ": "),
                             testing::EndsWith("; use " + setting("attention", "portable"))));
}

TEST_F(ChooseAttention, LeavesModelsWithoutAttention) { EXPECT_EQ(chosen(std::nullopt), std::nullopt); }

}  // namespace
}  // namespace mylos::tasks
