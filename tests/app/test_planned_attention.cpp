#include "tests/support/process.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// The attention kernel of mylos plan: its scratch memory is part of the plan.
namespace mylos::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

/// Returns the workspace of a plan of BERT-base with these options, in bytes.
std::size_t workspace(const Words& more) {
  Words words = joined(
      {"plan", "--json", "--model", "bert-base", "--batch", "8", "--micro-batch", "8", "--mode", "replicated", "--gpu"},
      more);
  const ProgramRun run = run_mylos(words);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  if (run.exit_code != 0) return 0;
  return json::parse(run.output)["modes"][0]["memory"]["workspace"].get<std::size_t>();
}

/// Attention on tensor cores needs no scratch.
TEST(PlannedAttention, IsThatOfTheGpu) {
  const std::size_t on_tensor_cores = workspace({"h100", "--precision", "bfloat16"});
  EXPECT_EQ(workspace({"a100-40", "--precision", "bfloat16"}), on_tensor_cores);
  EXPECT_GT(workspace({"h100", "--precision", "float"}), on_tensor_cores);
}

TEST(PlannedAttention, IsTheKernelThatIsAskedFor) {
  const auto with = [](const char* kernel) {
    return workspace({"h100", "--precision", "bfloat16", "--dropout", "0", "--attention", kernel});
  };
  EXPECT_EQ(with("auto"), with("cudnn")) << "a run may take it, and it needs the most memory";
  EXPECT_GT(with("cudnn"), with("tensor-cores")) << "it sums the gradient of queries in float";
  EXPECT_GT(with("portable"), with("tensor-cores"));
  EXPECT_THAT(run_mylos({"plan", "--model", "bert-base", "--gpu", "h100", "--precision", "bfloat16", "--dropout", "0",
                         "--attention", "cudnn"})
                  .output,
              HasSubstr(" --dropout 0 --precision bfloat16 --attention cudnn "));
}

/// As a run on that GPU would be, whatever this build is for.
TEST(PlannedAttention, ThatTheGpuCannotRunIsOneLine) {
  const auto error = [](Words words) {
    words.insert(words.begin(), {"plan", "--precision", "half"});
    const ProgramRun run = run_mylos(words);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.output, "");
    return run.errors;
  };
  EXPECT_EQ(error({"--model", "bert-base", "--gpu", "v100-32", "--dropout", "0", "--attention", "cudnn"}),
            "mylos: error: --attention cudnn: attention by cuDNN needs a GPU of compute capability 8.0 or later, and "
            "this one has 7.0; use --attention portable\n");
  EXPECT_EQ(
      error({"--model", "bert-base", "--gpu", "h100", "--attention", "cudnn"}),
      "mylos: error: --attention cudnn: it has no dropout, and that of this run is 0.1; use --dropout 0, or leave "
      "--attention out\n");
  EXPECT_EQ(error({"--model", "bert-base", "--gpu", "cpu", "--attention", "tensor-cores"}),
            "mylos: error: --attention tensor-cores: it needs a GPU; use --attention portable\n");
  const ProgramRun batches = run_mylos({"bench", "batch", "--plan", "--model", "bert-base", "--gpu", "v100-32",
                                        "--precision", "half", "--attention", "cudnn"});
  EXPECT_EQ(batches.exit_code, 1);
  EXPECT_THAT(batches.errors, HasSubstr("and this one has 7.0; use --attention portable\n"));
}

TEST(PlannedAttention, OfAModelWithoutAChoiceIsOneLine) {
  const ProgramRun run = run_mylos(
      {"plan", "--model", "resnet50", "--gpu", "h100", "--precision", "bfloat16", "--attention", "tensor-cores"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.errors, "mylos: error: --attention tensor-cores: these models have no attention; leave it out\n");
}

}  // namespace
}  // namespace mylos::tests
