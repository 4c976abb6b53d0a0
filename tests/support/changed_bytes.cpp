#include "tests/support/changed_bytes.hpp"

#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <stdexcept>
#include <string_view>

namespace mylos::tests {
namespace {

/// The signature at the begin of a structure, and the number of bytes from there that are changed.
struct Structure {
  std::string_view signature;
  std::size_t bytes;
};
constexpr std::array<Structure, 11> structures = {{{"\x89HDF", 48},
                                                   {"OHDR", 400},
                                                   {"OCHK", 300},
                                                   {"FRHP", 150},
                                                   {"FHDB", 600},
                                                   {"FHIB", 200},
                                                   {"BTHD", 40},
                                                   {"BTLF", 500},
                                                   {"BTIN", 500},
                                                   {"FSHD", 80},
                                                   {"FSSE", 100}}};

constexpr unsigned longest_read = 60;  // seconds; only ends a read that hangs

/// Exit codes of a reader. Those of sanitizers differ.
constexpr int accepted = 40, refused = 41, other_result = 42, other_exception = 43;

/// Reads the file in a child process.
[[noreturn]] void read_in_child(const std::function<bool()>& read) {
  ::alarm(longest_read);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDERR_FILENO);  // what a crash prints
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 1 << 22);  // growing the heap in small steps takes most of the time of a read
  int code = other_exception;
  try {
    code = read() ? accepted : other_result;
  } catch (const std::runtime_error&) {
    code = refused;
  } catch (...) {
  }
  H5close();  // as at the end of a program
  ::_exit(code);
}

std::string outcome_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  switch (const int code = WEXITSTATUS(status)) {
    case accepted:
    case refused:
      return "";
    case other_result:
      return "another result";
    case other_exception:
      return "an unexpected exception";
    default:
      return fmt::format("exit code {}", code);
  }
}

}  // namespace

std::vector<ChangedByte> draw_changed_bytes(const std::filesystem::path& file, std::size_t count) {
  const std::string bytes = read_file(file);
  std::vector<std::vector<std::uint64_t>> offsets;  // of the bytes of each kind of structure
  for (const Structure& structure : structures) {
    std::set<std::uint64_t> of_kind;
    for (std::size_t at = bytes.find(structure.signature); at != std::string::npos;
         at = bytes.find(structure.signature, at + 1)) {
      for (std::size_t i = at; i < std::min(at + structure.bytes, bytes.size()); ++i) of_kind.insert(i);
    }
    if (!of_kind.empty()) offsets.emplace_back(of_kind.begin(), of_kind.end());
  }
  std::mt19937 draw(5);
  std::vector<ChangedByte> changes;
  const auto change = [&](std::uint64_t offset) {
    const auto old = static_cast<std::uint8_t>(bytes[offset]);
    const std::array<std::uint8_t, 4> values = {static_cast<std::uint8_t>(draw()), 0, 1, 255};
    std::uint8_t value = values[draw() % values.size()];
    if (value == old) value = static_cast<std::uint8_t>(old ^ 0x20);
    changes.push_back({offset, value});
  };
  if (std::getenv("MYLOS_EVERY_BYTE") != nullptr) {
    count = 0;
    std::set<std::uint64_t> all;
    for (const auto& of_kind : offsets) all.insert(of_kind.begin(), of_kind.end());
    for (const std::uint64_t offset : all) change(offset);
  }
  if (heap_is_sanitized) count /= 20;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::uint64_t>& of_kind = offsets.at(i % offsets.size());
    change(of_kind[draw() % of_kind.size()]);
  }
  return changes;
}

std::vector<std::string> read_changed(const std::filesystem::path& file, const std::vector<ChangedByte>& changes,
                                      const std::function<bool()>& read) {
  std::vector<std::string> failures;
  const std::string bytes = read_file(file);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  const auto put = [&](std::uint64_t offset, std::uint8_t value) {
    ASSERT_EQ(::pwrite(descriptor, &value, 1, static_cast<off_t>(offset)), 1);
  };
  for (const auto& [offset, value] : changes) {
    put(offset, value);
    const pid_t child = ::fork();
    if (child == 0) read_in_child(read);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot start a reader");
    const auto old = static_cast<std::uint8_t>(bytes[offset]);
    put(offset, old);
    const std::string outcome = outcome_of(status);
    if (!outcome.empty()) failures.push_back(fmt::format("byte {}: {} -> {}: {}", offset, old, value, outcome));
  }
  ::close(descriptor);
  return failures;
}

}  // namespace mylos::tests
