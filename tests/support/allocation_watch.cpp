#include "tests/support/allocation_watch.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define MYLOS_HEAP_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MYLOS_HEAP_IS_SANITIZED
#endif
#endif

namespace mylos::tests {
namespace {

constexpr int deepest = 24;

// Without constructors, because malloc is called before any constructor has run.
std::atomic<std::size_t> limit{SIZE_MAX}, large{0}, tables{0}, first_size{0};
std::atomic<bool> watching{false};
void* first_frames[deepest];
int first_depth = 0;

/// True if the code at this address belongs to OpenBLAS.
bool is_openblas(const void* code) {
  Dl_info library;
  return dladdr(code, &library) != 0 && library.dli_fname != nullptr &&
         std::strstr(library.dli_fname, "openblas") != nullptr;
}

[[maybe_unused]] void saw(std::size_t bytes, const void* caller) {
  if (!watching.load(std::memory_order_relaxed) || bytes <= limit.load(std::memory_order_relaxed)) return;
  if (is_openblas(caller)) {
    ++tables;
    return;
  }
  if (large.fetch_add(1) > 0) return;
  first_size = bytes;
  first_depth = backtrace(first_frames, deepest);
}

}  // namespace

AllocationWatch::AllocationWatch(std::size_t most) {
  void* frames[1];
  backtrace(frames, 1);  // loads its library now, because it cannot be loaded within malloc
  limit = most;
  large = tables = first_size = 0;
  watching = true;
}

void AllocationWatch::stop() { watching = false; }

std::size_t AllocationWatch::count() const { return large; }

std::size_t AllocationWatch::openblas_tables() const { return tables; }

std::string AllocationWatch::first() const {
  if (large == 0) return "none";
  std::string text = std::to_string(first_size) + " bytes by";
  char** names = backtrace_symbols(first_frames, first_depth);
  for (int i = 0; i < first_depth && names != nullptr; ++i) text += std::string("\n  ") + names[i];
  std::free(names);
  return text;
}

bool AllocationWatch::available() {
#if defined(MYLOS_HEAP_IS_SANITIZED)
  return false;
#else
  return true;
#endif
}

}  // namespace mylos::tests

#if !defined(MYLOS_HEAP_IS_SANITIZED)
// glibc's implementations, under the names that it provides for replacements.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  mylos::tests::saw(bytes, __builtin_return_address(0));
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  mylos::tests::saw(count * bytes, __builtin_return_address(0));
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
  mylos::tests::saw(bytes, __builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  mylos::tests::saw(bytes, __builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif
