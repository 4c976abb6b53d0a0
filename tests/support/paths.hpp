#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Locations of the files that tests read. Small recordings are in tests/golden; large ones are outside the tree, and
/// tests skip with a reason if they are missing.
namespace mylos::tests {

/// Returns the root of the source tree: $MYLOS_SOURCE, by default that of the build. Tests may run on another machine
/// than the build.
std::filesystem::path source_dir();

/// Returns the program under test: $MYLOS_PROGRAM, by default that of the build.
std::filesystem::path program();

/// Returns the library for LD_PRELOAD of file_faults.cpp.
std::filesystem::path file_faults_library();

/// Returns tests/golden, which lab/record writes.
std::filesystem::path golden_data();

/// Returns the vocabulary of bert-base-uncased, 30,522 pieces.
std::filesystem::path uncased_vocabulary();

/// Returns $MYLOS_DATA, by default <root>/../shared/data. It may not exist.
std::filesystem::path shared_data();

/// Returns $MYLOS_REFERENCE, by default <root>/../shared/reference. It may not exist.
std::filesystem::path shared_reference();

/// Returns the folders with a recorded batch (batch.safetensors) in reference/<family> of golden_data(), and in
/// <family> of shared_reference() if it exists. BERTs are in reference/ itself, and their family is "".
std::vector<std::filesystem::path> recorded_models(const std::string& family);

}  // namespace mylos::tests
