#include "app/program.hpp"
#include "core/kernels/products/openblas_kernels.hpp"

int main(int argc, char** argv) {
  mylos::restart_with_openblas_kernels(argv);
  return mylos::app::run_program({argv + 1, argv + argc});
}
