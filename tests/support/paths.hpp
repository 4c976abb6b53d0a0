#pragma once

#include <filesystem>

/// Locations of the files that tests read. Small recordings are in tests/golden; large ones are outside the tree, and
/// tests skip with a reason if they are missing.
namespace mylos::tests {

/// Returns the root of the source tree: $MYLOS_SOURCE, by default that of the build. Tests may run on another machine
/// than the build.
std::filesystem::path source_dir();

/// Returns the program under test: $MYLOS_PROGRAM, by default that of the build.
std::filesystem::path program();

/// Returns tests/golden, which scripts/record writes.
std::filesystem::path golden_data();

/// Returns the vocabulary of bert-base-uncased, 30,522 pieces.
std::filesystem::path uncased_vocabulary();

/// Returns $MYLOS_DATA, by default <root>/../shared/data. It may not exist.
std::filesystem::path shared_data();

/// Returns $MYLOS_REFERENCE, by default <root>/../shared/reference. It may not exist.
std::filesystem::path shared_reference();

}  // namespace mylos::tests
