#include "core/base/process/shared_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

constexpr std::size_t shared_size = 10'000;

bool are_sevens(std::span<const std::byte> bytes) {
  return bytes.size() == shared_size && std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{7}; });
}

TEST(SharedMemory, HasTheBytesThatItsMakerWrites) {
  auto memory = std::make_unique<SharedMemory>(shared_size);
  EXPECT_EQ(memory->bytes().size(), shared_size);
  const SharedMemory mapped(memory->location());
  std::ranges::fill(memory->writable(), std::byte{7});
  EXPECT_TRUE(are_sevens(mapped.bytes()));
  EXPECT_NE(mapped.bytes().data(), memory->bytes().data());
  memory->seal();
  EXPECT_TRUE(are_sevens(memory->bytes()));
  memory.reset();
  EXPECT_TRUE(are_sevens(mapped.bytes())) << "it stays for those that have mapped it";
}

TEST(SharedMemory, IsReadByAnotherProcess) {
  SharedMemory memory(shared_size);
  std::ranges::fill(memory.writable(), std::byte{7});
  const SharedMemory::Location location = memory.location();
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_read = false;
    try {
      const SharedMemory mapped(location);
      is_read = are_sevens(mapped.bytes());
    } catch (const std::exception&) {
    }
    ::_exit(is_read ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemory, CannotBeMappedOrChangedOnceItIsSealed) {
  SharedMemory memory(shared_size);
  const SharedMemory::Location location = memory.location();
  memory.seal();
  EXPECT_THAT(error_of([&] { memory.writable(); }), HasSubstr("or sealed"));
  EXPECT_THAT(error_of([&] { memory.location(); }), HasSubstr("or sealed"));
  EXPECT_THAT(error_of([&] { const SharedMemory mapped(location); }), HasSubstr("cannot open /proc/"));
}

/// In another PID namespace, the process number is that of another process.
TEST(SharedMemory, OfAnotherProcessIsNoticed) {
  const SharedMemory memory(shared_size);
  SharedMemory::Location location = memory.location();
  ++location.file;
  EXPECT_THAT(error_of([&] { const SharedMemory mapped(location); }), HasSubstr("is of another process"));
}

TEST(SharedMemory, ThatCannotBeReservedIsAnErrorBeforeItIsTouched) {
  const tests::FileSizeLimit limit(4096);
  EXPECT_THAT(error_of([] { const SharedMemory memory(shared_size); }), HasSubstr("cannot reserve 10000 bytes: "));
}

}  // namespace
}  // namespace mylos
