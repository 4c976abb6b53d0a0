#include "tasks/interface/attention_choice.hpp"

#include "tests/support/temporary.hpp"

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
  const AttentionKernel kernel = attention_kernel({}, Precision::bfloat16, 64, notice);
  EXPECT_EQ(kernel, fastest_attention(Precision::bfloat16, 64, device ? device->capability : 0));
  EXPECT_EQ(said.size(), kernel == AttentionKernel::portable ? 0u : 1u);
  EXPECT_EQ(attention_kernel({}, Precision::float32, 64, {}), AttentionKernel::portable);
}

TEST(AttentionChoice, IsTheKernelThatIsAskedForOrAnError) {
  TaskConfig configured;
  configured.attention = AttentionKernel::portable;
  EXPECT_EQ(attention_kernel(configured, Precision::bfloat16, 64, {}), AttentionKernel::portable);
  configured.attention = AttentionKernel::tensor_cores;
  EXPECT_THAT(tests::error_of([&] { attention_kernel(configured, Precision::float32, 64, {}); }),
              testing::AllOf(testing::StartsWith("--attention tensor-cores: "),
                             testing::EndsWith("; use --attention portable")));
}

}  // namespace
}  // namespace mylos::tasks
