#include "core/kernels/attention/pair_tiles.hpp"

#if defined(MYLOS_MULTIPLIES_TILES)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mylos::attention {

#if defined(MYLOS_MULTIPLIES_TILES)
namespace {

/// Linux (5.16 or later) lets a process use tile registers only after it has requested them.
bool system_permits_tiles() {
  constexpr long arch_req_xcomp_perm = 0x1023, xfeature_xtiledata = 18;  // of Linux's asm/prctl.h
  return ::syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_xtiledata) == 0;
}

bool processor_has_tiles() {
  constexpr unsigned bfloat16_tiles = 1U << 22, tiles = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bfloat16_tiles) != 0 && (d & tiles) != 0;
}

}  // namespace

bool has_pair_tiles() {
  static const bool has = processor_has_tiles() && system_permits_tiles();
  return has;
}
#else
bool has_pair_tiles() { return false; }
#endif

}  // namespace mylos::attention
