#include "app/program/cpu_features.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <cstdint>

/// Ends the program with one line if the CPU lacks instructions that it was compiled for, before any of them runs, or
/// if the address space is too small for its libraries, before they are initialised. This file is compiled for the
/// oldest supported CPU.
namespace mylos::app {
namespace {

void append(char* text, std::size_t size, std::size_t& length, const char* word) {
  while (*word != '\0' && length + 1 < size) text[length++] = *word++;
  text[length] = '\0';
}

void append(char* text, std::size_t size, std::size_t& length, std::uint64_t number) {
  if (number >= 10) append(text, size, length, number / 10);
  const char digit[] = {static_cast<char>('0' + number % 10), '\0'};
  append(text, size, length, digit);
}

/// Priority 101 is the first available to programs, so this runs before the constructors of all other files.
__attribute__((constructor(101))) void refuse_other_cpus() {
  bool present[cpu_feature_count];
  detect_cpu_features(present);
  char names[512];
  if (missing_cpu_features(built_cpu_features, present, names, sizeof names) == 0) return;
  char message[1024];
  std::size_t length = 0;
  append(message, sizeof message, length, "mylos: error: this program was built for another CPU: this one lacks ");
  append(message, sizeof message, length, names);
  append(message, sizeof message, length, "; build it here, or with -DMYLOS_ENABLE_NATIVE=OFF\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, length);
  ::_exit(1);
}

// The address sanitizer is not initialised yet at this point, and needs more address space than any limit allows.
#ifndef __SANITIZE_ADDRESS__
/// Returns the address space of this process in bytes; 0 if unknown.
std::uint64_t address_space() {
  char text[32] = {};
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0 || ::read(file, text, sizeof text - 1) < 0) return 0;
  ::close(file);
  std::uint64_t pages = 0;
  for (const char* digit = text; *digit >= '0' && *digit <= '9'; ++digit) {
    pages = 10 * pages + static_cast<std::uint64_t>(*digit - '0');
  }
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// OpenBLAS reserves 256 MiB when it is loaded, and tries for ever if it cannot have them. MPI loads its plugins later,
/// and prints a line for each that does not fit.
void refuse_small_address_space() {
  constexpr std::uint64_t reserved_by_libraries = std::uint64_t{352} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const std::uint64_t needed = address_space() + reserved_by_libraries;
  if (limit.rlim_cur >= needed) return;
  char message[256];
  std::size_t length = 0;
  append(message, sizeof message, length, "mylos: error: the address space is limited to ");
  append(message, sizeof message, length, limit.rlim_cur >> 20);
  append(message, sizeof message, length, " MiB (ulimit -v), but this program needs ");
  append(message, sizeof message, length, (needed >> 20) + 1);
  append(message, sizeof message, length, " MiB to start; raise the limit\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, length);
  ::_exit(1);
}

/// The loader calls these functions of a program before the constructors of its libraries. Not const: clang would
/// compile a constant, and what it points to, for AMD GPUs as well.
__attribute__((section(".preinit_array"), used)) void (*before_libraries)() = refuse_small_address_space;
#endif

#if defined(__aarch64__) && defined(__linux__)
bool has_bit(unsigned long word, unsigned long bit) { return (::getauxval(word) & bit) != 0; }

/// Returns the size of SVE's registers in this process; 0 if there are none.
int sve_bits() {
  const int length = ::prctl(PR_SVE_GET_VL);
  return length < 0 ? 0 : 8 * (length & PR_SVE_VL_LEN_MASK);
}
#endif

}  // namespace

#define MYLOS_CPU_FEATURE_NAME(name, macro, ...) name,
extern const char* const cpu_feature_names[cpu_feature_count] = {MYLOS_FOR_EACH_CPU_FEATURE(MYLOS_CPU_FEATURE_NAME)};

void detect_cpu_features(bool (&present)[cpu_feature_count]) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define MYLOS_HAS_CPU_FEATURE(name, macro) __builtin_cpu_supports(name) != 0,
  const bool found[cpu_feature_count] = {MYLOS_FOR_EACH_CPU_FEATURE(MYLOS_HAS_CPU_FEATURE)};
#elif defined(__aarch64__) && defined(__linux__)
#define MYLOS_HAS_CPU_FEATURE(name, macro, present) present,
  const bool found[cpu_feature_count] = {MYLOS_FOR_EACH_CPU_FEATURE(MYLOS_HAS_CPU_FEATURE)};
#else
  const bool* found = built_cpu_features;
#endif
  for (std::size_t i = 0; i < cpu_feature_count; ++i) present[i] = found[i];
}

std::size_t missing_cpu_features(const bool* built, const bool* present, char* text, std::size_t size) {
  std::size_t missing = 0, length = 0;
  text[0] = '\0';
  for (std::size_t i = 0; i < cpu_feature_count; ++i) {
    if (!built[i] || present[i]) continue;
    if (missing++ > 0) append(text, size, length, " ");
    append(text, size, length, cpu_feature_names[i]);
  }
  return missing;
}

}  // namespace mylos::app
