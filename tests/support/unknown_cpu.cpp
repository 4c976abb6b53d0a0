#include <cstdlib>

/// Simulates an OpenBLAS that does not recognise the CPU, for programs started with LD_PRELOAD naming this library. As
/// OpenBLAS does, it names the kernels of the environment variable, which it reads when it is loaded.
namespace {

const char* const chosen = std::getenv("OPENBLAS_CORETYPE");
char* const unknown = const_cast<char*>("Prescott");

}  // namespace

extern "C" char* openblas_get_corename() { return chosen == nullptr ? unknown : const_cast<char*>(chosen); }
