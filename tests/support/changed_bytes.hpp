#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// Changes bytes in the structures of an HDF5 file, one at a time, and reads each changed file in a process of its own.
namespace mylos::tests {

struct ChangedByte {
  std::uint64_t offset = 0;
  std::uint8_t value = 0;
};

/// Draws changed bytes with a fixed seed: as many for each kind of structure in `file`, `count` in all. Under
/// sanitizers, where each process starts slowly, a twentieth. With MYLOS_EVERY_BYTE set, changes every byte of all
/// structures once.
std::vector<ChangedByte> draw_changed_bytes(const std::filesystem::path& file, std::size_t count);

/// Calls `read` in a child process for each changed file. `read` returns whether the result is acceptable, or throws
/// std::runtime_error. Returns a line for each change after which it did neither: it crashed, hung, or had another
/// result. The file is unchanged afterwards.
std::vector<std::string> read_changed(const std::filesystem::path& file, const std::vector<ChangedByte>& changes,
                                      const std::function<bool()>& read);

}  // namespace mylos::tests
