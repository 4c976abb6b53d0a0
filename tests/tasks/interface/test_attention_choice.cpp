#include "tasks/interface/attention_choice.hpp"

#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mylos::tasks {
namespace {

TEST(AttentionChoice, IsThatOfTheDeviceIfNoneIsAskedFor) {
  const std::optional<DeviceInfo> device = device_in_use();
  std::vector<std::string> said;
  const Notice notice = [&](const std::string& line) { said.push_back(line); };
  const AttentionKernel kernel = attention_kernel({}, {.precision = Precision::bfloat16, .head_size = 64}, notice);
  EXPECT_EQ(kernel, fastest_attention(Precision::bfloat16, 64, device ? device->capability : 0));
  EXPECT_EQ(said.size(), kernel == AttentionKernel::portable ? 0u : 1u);
  EXPECT_EQ(attention_kernel({}, {.precision = Precision::float32, .head_size = 64}, {}), AttentionKernel::portable);
}

TEST(AttentionChoice, IsTheKernelThatIsAskedForOrAnError) {
  TaskConfig configured;
  configured.attention = AttentionKernel::portable;
  const AttentionUse with_dropout{.precision = Precision::bfloat16, .head_size = 64, .dropout = 0.1};
  EXPECT_EQ(attention_kernel(configured, with_dropout, {}), AttentionKernel::portable);
  for (const AttentionKernel kernel : {AttentionKernel::tensor_cores, AttentionKernel::cudnn}) {
    configured.attention = kernel;
    const AttentionUse in_float{.precision = Precision::float32, .head_size = 64};
    EXPECT_THAT(tests::error_of([&] { attention_kernel(configured, in_float, {}); }),
                testing::AllOf(testing::StartsWith(fmt::format("--attention {}: ", to_string(kernel))),
                               testing::EndsWith("; use --attention portable")));
  }
}

/// With the library, dropout is what is refused; without it, the library is missing.
TEST(AttentionChoice, OfCudnnIsWithoutDropout) {
  TaskConfig configured;
  configured.attention = AttentionKernel::cudnn;
  const std::optional<DeviceInfo> device = device_in_use();
  const std::string obstacle =
      attention_obstacle(AttentionKernel::cudnn, Precision::bfloat16, 64, device ? device->capability : 0);
  const AttentionUse use{.precision = Precision::bfloat16, .head_size = 64, .dropout = 0.1};
  EXPECT_EQ(tests::error_of([&] { attention_kernel(configured, use, {}); }),
            obstacle.empty()
                ? "--attention cudnn: it has no dropout, and that of this run is 0.1; use --dropout 0, or leave "
                  "--attention out"
                : "--attention cudnn: " + obstacle + "; use --attention portable");
}

TEST(AttentionChoice, OfAPlanIsThatOfTheGpu) {
  const auto planned = [](int capability, Precision precision, std::size_t head_size) {
    TaskConfig configured;
    configured.planned_capability = capability;
    return planned_attention(configured, precision, head_size);
  };
  EXPECT_EQ(planned(90, Precision::bfloat16, 64), AttentionKernel::tensor_cores);
  EXPECT_EQ(planned(90, Precision::float32, 64), AttentionKernel::portable);
  EXPECT_EQ(planned(90, Precision::float16, 48), AttentionKernel::portable);
  EXPECT_EQ(planned(80, Precision::bfloat16, 64), AttentionKernel::portable) << "not validated on it";
  EXPECT_EQ(planned(0, Precision::bfloat16, 64), AttentionKernel::portable);
  TaskConfig chosen;
  chosen.attention = AttentionKernel::portable;
  chosen.planned_capability = 90;
  EXPECT_EQ(planned_attention(chosen, Precision::bfloat16, 64), AttentionKernel::portable);
}

}  // namespace
}  // namespace mylos::tasks
