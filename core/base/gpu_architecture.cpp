#include "core/base/gpu_architecture.hpp"

#include <fmt/format.h>

namespace mylos {

bool GpuArchitecture::multiplies(Precision precision) const {
  constexpr int volta = 70, ampere = 80;
  switch (precision) {
    case Precision::float32:
      return false;
    case Precision::float16:
      return is_nvidia(volta) || is_amd();
    case Precision::bfloat16:
      return is_nvidia(ampere) || is_amd();
  }
  return false;
}

std::string short_name(const GpuArchitecture& architecture) {
  if (architecture.is_amd()) return fmt::format("gfx{:x}", architecture.number);
  if (!architecture.is_gpu()) return "none";
  return fmt::format("{}.{}", architecture.number / 10, architecture.number % 10);
}

std::string to_string(const GpuArchitecture& architecture) {
  return (architecture.is_nvidia() ? "compute capability " : "") + short_name(architecture);
}

}  // namespace mylos
