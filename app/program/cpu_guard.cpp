#include "app/program/cpu_features.hpp"

#include <unistd.h>

/// Ends the program with one line if the CPU lacks instructions that it was compiled for, before any of them runs. This
/// file is compiled for the oldest supported CPU.
namespace mylos::app {
namespace {

void append(char* text, std::size_t size, std::size_t& length, const char* word) {
  while (*word != '\0' && length + 1 < size) text[length++] = *word++;
  text[length] = '\0';
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

}  // namespace

#define MYLOS_CPU_FEATURE_NAME(name, macro) name,
extern const char* const cpu_feature_names[cpu_feature_count] = {MYLOS_FOR_EACH_CPU_FEATURE(MYLOS_CPU_FEATURE_NAME)};

void detect_cpu_features(bool (&present)[cpu_feature_count]) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define MYLOS_HAS_CPU_FEATURE(name, macro) __builtin_cpu_supports(name) != 0,
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
