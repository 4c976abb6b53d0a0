#pragma once

#include <string>
#include <string_view>

/// The kernels of OpenBLAS, and how to make it use fast ones on a CPU that it does not recognise.
namespace mylos {

/// Returns OpenBLAS's version and build options, or the name of the CPU whose kernels it uses; empty if another BLAS is
/// linked.
std::string openblas_config();
std::string openblas_kernels();

/// The instructions that decide which kernels of OpenBLAS a CPU can run.
struct VectorInstructions {
  bool avx2 = false;    ///< with FMA
  bool avx512 = false;  ///< F, CD, BW, DQ and VL, as every server CPU with AVX-512 has
};

/// Returns the kernels that OpenBLAS should use instead of `chosen`, named as in OPENBLAS_CORETYPE; empty if it should
/// keep them. An OpenBLAS that is older than the CPU falls back to kernels for "Prescott", a CPU of 2004 without AVX,
/// which multiply at a fifth of the rate. `chosen` is that of openblas_kernels.
std::string_view better_openblas_kernels(std::string_view chosen, const VectorInstructions& cpu);

/// The kernels of OpenBLAS in this process, and who chose them. Kernels are named as in OPENBLAS_CORETYPE.
struct OpenBlasChoice {
  std::string kernels = {};     ///< in use; empty if another BLAS is linked
  std::string of_program = {};  ///< those that restart_with_openblas_kernels asked for; empty if it did not
  std::string of_user = {};     ///< OPENBLAS_CORETYPE as the user has set it; empty if it is not set
  std::string better = {};      ///< those that the CPU could run instead (better_openblas_kernels); empty if none
};
/// Call restart_with_openblas_kernels first.
OpenBlasChoice openblas_choice();

/// Starts this program again with the variable OPENBLAS_CORETYPE if OpenBLAS does not recognise the CPU. OpenBLAS reads
/// the variable only when it is loaded, before main; afterwards the variable is removed again. Does nothing if the
/// variable is set, or if the system cannot start the program again. Call it first in main; `argv` is that of main.
void restart_with_openblas_kernels(char* const* argv);

}  // namespace mylos
