#pragma once

#include <filesystem>

/// Where tests find what they read. Small recorded data lies in tests/golden; large lies outside the tree, and a test
/// that misses it skips with a reason.
namespace mylos::tests {

/// The root of the source tree: $MYLOS_SOURCE, by default that of the build. Tests may run elsewhere than they were
/// built.
std::filesystem::path source_dir();

/// The program under test: $MYLOS_PROGRAM, by default that of the build.
std::filesystem::path program();

/// tests/golden, which scripts/record writes.
std::filesystem::path golden_data();

/// The vocabulary of bert-base-uncased, 30,522 pieces.
std::filesystem::path uncased_vocabulary();

/// $MYLOS_DATA, by default <root>/../shared/data; it may not exist.
std::filesystem::path shared_data();

/// $MYLOS_REFERENCE, by default <root>/../shared/reference; it may not exist.
std::filesystem::path shared_reference();

}  // namespace mylos::tests
