#include "core/kernels/openblas_kernels.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace mylos {
namespace {

constexpr const char* variable = "OPENBLAS_CORETYPE";

std::string ask(const char* function) {
  const auto answer = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, function));
  return answer == nullptr ? std::string() : answer();
}

VectorInstructions instructions_of_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return {.avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0,
          .avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
                    __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0};
#else
  return {};
#endif
}

}  // namespace

std::string openblas_config() { return ask("openblas_get_config"); }
std::string openblas_kernels() { return ask("openblas_get_corename"); }

std::string_view better_openblas_kernels(std::string_view chosen, const VectorInstructions& cpu) {
  if (chosen != "Prescott") return {};
  if (cpu.avx512) return "SkylakeX";
  return cpu.avx2 ? "Haswell" : "";
}

void restart_with_openblas_kernels(char* const* argv) {
  if (std::getenv(variable) != nullptr) return;
  const std::string_view kernels = better_openblas_kernels(openblas_kernels(), instructions_of_cpu());
  if (kernels.empty()) return;
  // The path instead of /proc/self/exe, from whose last part the system would name the process.
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown || ::setenv(variable, kernels.data(), 1) != 0) return;
  ::execv(program.c_str(), argv);
  ::unsetenv(variable);
}

}  // namespace mylos
