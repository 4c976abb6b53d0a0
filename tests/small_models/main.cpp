#include "app/program.hpp"
#include "core/kernels/products/openblas_kernels.hpp"
#include "tasks/task_kinds.hpp"
#include "tests/small_models/word_kind.hpp"

/// mylos with one more task kind, and no other changes.
int main(int argc, char** argv) {
  mylos::restart_with_openblas_kernels(argv);
  const mylos::tasks::RegisteredTaskKind words(mylos::small_models::next_word());
  return mylos::app::run_program({argv + 1, argv + argc});
}
