#include "core/kernels/products/openblas_kernels.hpp"

#include "core/device.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace mylos {
namespace {

constexpr const char* variable = "OPENBLAS_CORETYPE";
/// Set while the program starts for the second time.
constexpr const char* restarted = "MYLOS_RESTARTED";

std::string ask(const char* function) {
  const auto answer = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, function));
  return answer == nullptr ? std::string() : answer();
}

/// The kernels with which this program was started again; empty if it was not.
std::string& kernels_of_restart() {
  static std::string kernels;
  return kernels;
}

std::string value_of_variable() {
  const char* const value = std::getenv(variable);
  return value == nullptr ? std::string() : value;
}

VectorInstructions instructions_of_cpu() {
#if defined(__x86_64__) && !defined(MYLOS_DEVICE_PASS)
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

OpenBlasChoice openblas_choice() {
  OpenBlasChoice choice{
      .kernels = openblas_kernels(), .of_program = kernels_of_restart(), .of_user = value_of_variable()};
  choice.better = better_openblas_kernels(choice.kernels, instructions_of_cpu());
  return choice;
}

void restart_with_openblas_kernels(char* const* argv) {
  if (std::getenv(restarted) != nullptr) {
    kernels_of_restart() = value_of_variable();
    // OpenBLAS has read its variable. Programs that this one starts may run on other CPUs.
    ::unsetenv(restarted);
    ::unsetenv(variable);
    return;
  }
  if (std::getenv(variable) != nullptr) return;
  const std::string_view kernels = better_openblas_kernels(openblas_kernels(), instructions_of_cpu());
  // Without an interpreter, the loader was started by its name, and /proc/self/exe is the loader.
  if (kernels.empty() || ::getauxval(AT_BASE) == 0) return;
  // Executes the resolved path: with /proc/self/exe the process would be named "exe".
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown || ::setenv(restarted, "1", 1) != 0) return;
  if (::setenv(variable, kernels.data(), 1) == 0) ::execv(program.c_str(), argv);
  ::unsetenv(restarted);
  ::unsetenv(variable);
}

}  // namespace mylos
