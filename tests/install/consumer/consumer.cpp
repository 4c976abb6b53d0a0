#include "core/base/text/quantities.hpp"
#include "core/device.hpp"
#include "core/kernels/products/gemm.hpp"
#include "data/tokenizer/json/wordpiece.hpp"
#include "nn/learning_rate.hpp"
#include "parallel/launch/launcher.hpp"

#include <cstdio>
#include <cstdlib>

/// consumer VOCABULARY: calls one function of each installed library and prints the results.
int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  Kokkos::ScopeGuard kokkos;
  const mylos::data::WordPieceTokenizer tokenizer(mylos::data::Vocabulary::load(mylos::FileReader(), argv[1]));
  const auto tokens = tokenizer.tokenize("The mill turns.").ids.size();

  constexpr int size = 8;
  const mylos::Matrix<float> a("mylos::consumer::a", size, size), c("mylos::consumer::c", size, size);
  Kokkos::deep_copy(a, 0.5f);
  const mylos::Gemm gemm(mylos::default_gemm_provider());
  const mylos::ExecutionSpace space;
  gemm.operator()<float, float>(space, mylos::Transpose::no, a, mylos::Transpose::no, a, 0.0f, c);
  space.fence();
  float corner = 0.0f;
  Kokkos::deep_copy(corner, Kokkos::subview(c, 0, 0));

  const std::size_t ranks = mylos::parallel::launched_ranks([](const char*) -> const char* { return nullptr; });
  const auto schedule = mylos::nn::to_string(mylos::nn::parse_schedule("cosine"));
  std::printf("tokens %zu, product %g, ranks %zu, schedule %.*s, time %s\n", tokens, static_cast<double>(corner), ranks,
              static_cast<int>(schedule.size()), schedule.data(), mylos::duration_text(65).c_str());
  return corner == 2.0f && tokens >= 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
