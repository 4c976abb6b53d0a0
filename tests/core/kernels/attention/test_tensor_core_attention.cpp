#include "core/kernels/attention/tensor_core_attention.hpp"

#include "tests/core/kernels/attention_twin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#if !defined(MYLOS_DEVICE_BUILD)
#include "core/kernels/gpu/attention_tile_passes.hpp"
#include "tests/core/kernels/emulated_block.hpp"
#endif

/// Attention on tensor cores: on the device if the build is for one with tensor cores, otherwise the same source in
/// host threads (emulated_block.hpp), with the instructions of compute capability 8.0, with those of 7.0, and with
/// those of AMD's matrix cores.
namespace mylos::attention {
namespace {

using testing::HasSubstr;
using tests::AttentionCase;
using tests::AttentionProblem;
using tests::expect_equal_bits;
using tests::expect_near_largest;
using tests::to_host;

#if defined(MYLOS_DEVICE_BUILD)

std::string missing(Precision precision) { return attention_obstacle(AttentionKernel::tensor_cores, precision); }

template <class T>
void run(AttentionProblem<T>& problem) {
  problem.shape.kernel = AttentionKernel::tensor_cores;
  problem.forward();
  problem.backward();
}

#else

using matrix::emulate;
using matrix::EmulatedAmpereBlock;
using matrix::EmulatedBlock;
using matrix::EmulatedMfmaBlock;
using matrix::EmulatedVoltaBlock;
using matrix::EmulationCounts;
using matrix::ThreadOrder;

std::string missing(Precision) { return {}; }

template <class Block, class Pass>
EmulationCounts run_pass(std::size_t samples, std::size_t heads, const typename Pass::Arguments& all,
                         ThreadOrder order) {
  const std::size_t blocks = block_count(samples, heads, all.longest, Pass::C::own_rows);
  return emulate(blocks, Block::Mma::lanes, Pass::octets, order,
                 [&](const EmulatedBlock& block) { Pass::run(Block(block), all); });
}

/// The dropout of a pass, drawn over words that are not written otherwise.
template <class T>
struct DrawnPairs {
  Vector<std::uint32_t> words;
  KeptPairs kept;

  explicit DrawnPairs(const PackedAttention<T>& p) {
    if (!p.dropout.active()) return;
    const std::size_t rows = p.qkv.extent(0), longest = p.sequences.longest;
    words = Vector<std::uint32_t>("test::kept", kept_pairs_bytes(p.shape.heads, rows, longest) / sizeof(std::uint32_t));
    Kokkos::deep_copy(words, 0xaaaaaaaau);
    kept = {.words = words.data(), .rows = rows, .words_of_query = kept_words_of_query(longest)};
    draw_kept_pairs(ExecutionSpace(), p.shape, p.sequences, p.dropout, kept);
    Kokkos::fence();
  }
};

/// The counts of the passes: forward, backward by queries, and backward by keys.
template <class Block, class T, int size>
std::vector<EmulationCounts> run_passes(const PackedAttention<T>& p, ThreadOrder order) {
  const std::size_t samples = p.sequences.sample_ids.size();
  const DrawnPairs<T> drawn(p);
  const auto forward = forward_arguments<T>(p.shape, p.sequences, p.dropout, drawn.kept, p.qkv, p.out, p.log_sum_exp);
  const auto backward = backward_arguments<T>(p.shape, p.sequences, p.dropout, drawn.kept, p.qkv, p.out, p.log_sum_exp,
                                              p.dout, p.dqkv, p.row_sums);
  return {run_pass<Block, ForwardPass<Block, T, size>>(samples, p.shape.heads, forward, order),
          run_pass<Block, QueryPass<Block, T, size>>(samples, p.shape.heads, backward, order),
          run_pass<Block, KeyPass<Block, T, size>>(samples, p.shape.key_value_heads, backward, order)};
}

template <class Block = EmulatedAmpereBlock, class T>
std::vector<EmulationCounts> run(const PackedAttention<T>& problem, ThreadOrder order = ThreadOrder::ascending) {
  switch (problem.shape.head_size) {
    case 32:
      return run_passes<Block, T, 32>(problem, order);
    case 64:
      return run_passes<Block, T, 64>(problem, order);
    default:
      return run_passes<Block, T, 128>(problem, order);
  }
}

#endif

/// Returns columns [begin, begin + count) of a matrix of `columns` columns.
std::vector<double> columns_of(const std::vector<double>& matrix, std::size_t columns, std::size_t begin,
                               std::size_t count) {
  std::vector<double> cut;
  for (std::size_t row = 0; row < matrix.size(); row += columns) {
    cut.insert(cut.end(), matrix.begin() + row + begin, matrix.begin() + row + begin + count);
  }
  return cut;
}

/// Compares the results of compute(problem) with those of the naive twin.
template <class T, class Compute>
void compare_with_naive(const AttentionCase& c, const Compute& compute) {
  constexpr double tolerance = attention_tolerance<T>;
  if (const std::string obstacle = missing(precision_of<T>); !obstacle.empty()) GTEST_SKIP() << obstacle;
  AttentionProblem<T> problem(c);
  Kokkos::deep_copy(problem.out, T(7.0f));  // to check that old contents are overwritten
  compute(problem);
  const auto expected = tests::naive_attention(problem);
  expect_near_largest(to_host(problem.out), expected.out, tolerance, "out");
  expect_near_largest(to_host(problem.log_sum_exp), expected.log_sum_exp, 2e-6, "log_sum_exp");
  const std::size_t columns = problem.shape.columns(), queries = c.heads * c.head_size;
  const std::size_t keys = c.key_value_heads * c.head_size;
  const auto got = to_host(problem.dqkv);
  const auto compare = [&](std::size_t begin, std::size_t count, const char* what) {
    expect_near_largest(columns_of(got, columns, begin, count), columns_of(expected.dqkv, columns, begin, count),
                        2.0 * tolerance, what);
  };
  compare(0, queries, "dq");
  compare(queries, keys, "dk");
  compare(queries + keys, keys, "dv");
}

const std::vector<AttentionCase> cases = {
    {"Plain", 2, 2, 32, false, 0.0f, {7, 40, 1, 129}},      {"BertHeads", 2, 2, 64, false, 0.1f, {65, 3, 150}},
    {"LargeHeads", 1, 1, 128, false, 0.1f, {70}},           {"Dropout", 2, 2, 32, false, 0.3f, {8, 100, 61}},
    {"Causal", 1, 1, 32, true, 0.0f, {1, 70, 32, 200}},     {"CausalDropout", 1, 1, 64, true, 0.2f, {130}},
    {"Grouped", 4, 2, 32, false, 0.0f, {50, 17}},           {"GroupedCausalDropout", 4, 1, 32, true, 0.1f, {50, 130}},
    {"LargeHeadsCausal", 2, 1, 128, true, 0.0f, {67}},      {"WholeTiles", 1, 1, 64, false, 0.0f, {128, 64}},
    {"AlmostNoDropout", 1, 1, 64, false, 1e-6f, {40}},      {"AlmostOnlyDropout", 1, 1, 64, false, 0.99999f, {40}},
    {"LargeHeadsGrouped", 4, 2, 128, true, 0.2f, {66, 33}}, {"Long", 1, 1, 32, false, 0.1f, {385}},
    {"WindowOfTwo", 2, 1, 32, true, 0.0f, {1, 70}, 2},      {"OddWindowDropout", 2, 1, 64, true, 0.2f, {130, 7}, 7},
    {"WindowOfATile", 1, 1, 32, true, 0.1f, {200, 32}, 32}, {"LongWindow", 2, 1, 32, true, 0.0f, {250}, 101},
    {"WindowOfTheLength", 1, 1, 64, true, 0.0f, {65}, 65},  {"WindowOfHeadsOf128", 1, 1, 128, true, 0.0f, {150}, 9},
};

class TensorCoreAttention : public testing::TestWithParam<AttentionCase> {};

#if defined(MYLOS_DEVICE_BUILD)
template <class T>
void expect_naive_and_the_same_bits_again(const AttentionCase& c) {
  compare_with_naive<T>(c, [&](AttentionProblem<T>& problem) {
    run(problem);
    AttentionProblem<T> again(c);
    run(again);
    expect_equal_bits(problem, again);
  });
}

TEST_P(TensorCoreAttention, EqualsNaiveTwinInBfloat16) { expect_naive_and_the_same_bits_again<bfloat16>(GetParam()); }
#else
/// A thread that reads data before another has written it, or overwrites data that another still reads, changes bits
/// when the order is reversed. On AMD GPUs, pairs of rows four apart of heads of 32 are in the same banks.
template <class Block, class T>
void expect_naive_in_any_order(const AttentionCase& c) {
  compare_with_naive<T>(c, [&](AttentionProblem<T>& problem) {
    for (const EmulationCounts& pass : run<Block>(problem, ThreadOrder::ascending)) {
      EXPECT_GT(pass.operand_loads, 0u);
      if (c.head_size > 32 || Block::Mma::lanes == 32) EXPECT_EQ(pass.bank_conflicts, 0u);
    }
    const AttentionProblem<T> descending(c);
    run<Block>(descending, ThreadOrder::descending);
    expect_equal_bits(problem, descending);
  });
}

TEST_P(TensorCoreAttention, EqualsNaiveTwinInBfloat16) {
  expect_naive_in_any_order<EmulatedAmpereBlock, bfloat16>(GetParam());
}
#endif
TEST_P(TensorCoreAttention, EqualsNaiveTwinInHalf) {
  compare_with_naive<half>(GetParam(), [](auto& problem) { run(problem); });
}

std::string name_of(const testing::TestParamInfo<AttentionCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Shapes, TensorCoreAttention, testing::ValuesIn(cases), name_of);

#if !defined(MYLOS_DEVICE_BUILD)
/// Each head size, and every kind of synchronisation: several buffers of rows, dropout, and rows of several heads.
const std::vector<AttentionCase> volta_cases = {
    {"HeadsOf32", 2, 1, 32, true, 0.1f, {9, 130}},     {"HeadsOf64", 1, 1, 64, false, 0.1f, {140}},
    {"HeadsOf128", 2, 1, 128, false, 0.2f, {66}},      {"Plain", 1, 1, 32, false, 0.0f, {7, 40, 1, 129}},
    {"LargeHeadsCausal", 1, 1, 128, true, 0.0f, {67}}, {"AlmostOnlyDropout", 1, 1, 64, false, 0.99999f, {40}},
    {"OddWindow", 2, 1, 32, true, 0.1f, {9, 130}, 7}};

/// With the instructions of compute capability 7.0: copies take place at once, and the loads of a thread do not wait
/// for other threads.
class VoltaAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(VoltaAttention, EqualsNaiveTwin) { expect_naive_in_any_order<EmulatedVoltaBlock, half>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Shapes, VoltaAttention, testing::ValuesIn(volta_cases), name_of);

/// With the instructions of AMD's matrix cores, and waves of 64 threads.
class MfmaAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(MfmaAttention, EqualsNaiveTwinInBfloat16) { expect_naive_in_any_order<EmulatedMfmaBlock, bfloat16>(GetParam()); }
TEST_P(MfmaAttention, EqualsNaiveTwinInHalf) {
  compare_with_naive<half>(GetParam(), [](auto& problem) { run<EmulatedMfmaBlock>(problem); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, MfmaAttention, testing::ValuesIn(cases), name_of);

/// A sequence of 100 rows has 7 warps of 16 rows and slices of 32 columns; nothing beyond them is multiplied.
template <class Block>
void expect_work_of_what_is_there() {
  const auto counts = run<Block>(AttentionProblem<half>(AttentionCase{"", 1, 1, 64, false, 0.0f, {100}}));
  EXPECT_EQ(counts[0].multiply_adds, std::size_t{2 * 112 * 128 * 64});
  EXPECT_EQ(counts[1].multiply_adds, std::size_t{3 * 112 * 128 * 64});
  EXPECT_EQ(counts[2].multiply_adds, std::size_t{4 * 112 * 128 * 64});
  const auto shorter = run<Block>(AttentionProblem<half>(AttentionCase{"", 1, 1, 64, false, 0.0f, {20}}));
  EXPECT_EQ(shorter[0].multiply_adds, std::size_t{2 * 32 * 32 * 64});
  EXPECT_EQ(shorter[2].multiply_adds, std::size_t{4 * 32 * 32 * 64});
}

/// With a window of 16, a warp of 16 queries sees 31 keys: one slice of 32, or two if the warp does not begin a slice's
/// second half. A warp of 16 keys is seen by as many queries.
template <class Block>
void expect_work_of_a_window() {
  const auto counts = run<Block>(AttentionProblem<half>(AttentionCase{"", 1, 1, 64, true, 0.0f, {256}, 16}));
  constexpr std::size_t slices = 1 + 1 + 2 * 7 + 7;  // of the first two warps; of the even and odd ones after them
  EXPECT_EQ(counts[0].multiply_adds, 2 * slices * 16 * 32 * 64);
  EXPECT_EQ(counts[1].multiply_adds, 3 * slices * 16 * 32 * 64);
  EXPECT_EQ(counts[2].multiply_adds, 4 * slices * 16 * 32 * 64);
}

TEST(TensorCoreAttentionWork, IsThatOfTheWindow) { expect_work_of_a_window<EmulatedAmpereBlock>(); }
TEST(VoltaAttentionWork, IsThatOfTheWindow) { expect_work_of_a_window<EmulatedVoltaBlock>(); }
TEST(MfmaAttentionWork, IsThatOfTheWindow) { expect_work_of_a_window<EmulatedMfmaBlock>(); }

TEST(TensorCoreAttentionWindow, OfTheLengthChangesNoBit) {
  const AttentionCase c{"", 2, 1, 32, true, 0.1f, {150}};
  AttentionCase windowed = c;
  windowed.window = 150;
  const AttentionProblem<half> without(c), with(windowed);
  run(without);
  run(with);
  expect_equal_bits(without, with);
}

TEST(TensorCoreAttentionWork, GrowsWithWhatIsThere) { expect_work_of_what_is_there<EmulatedAmpereBlock>(); }
TEST(VoltaAttentionWork, GrowsWithWhatIsThere) { expect_work_of_what_is_there<EmulatedVoltaBlock>(); }
TEST(MfmaAttentionWork, GrowsWithWhatIsThere) { expect_work_of_what_is_there<EmulatedMfmaBlock>(); }

/// 32 threads write one word each: rows g of a tile at octet j, word t.
TEST(TensorCoreAttentionWork, ResultsAreWrittenWithoutBankConflicts) {
  const auto banks_of = [](auto size, int octet) {
    std::vector<int> banks;
    for (int lane = 0; lane < matrix::M16n8k16::lanes; ++lane) {
      banks.push_back((4 * matrix::position<size>(lane / 4, octet) + lane % 4) % 32);
    }
    return banks;
  };
  std::vector<int> each;
  for (int bank = 0; bank < 32; ++bank) each.push_back(bank);
  EXPECT_THAT(banks_of(std::integral_constant<int, 32>(), 3), testing::UnorderedElementsAreArray(each));
  EXPECT_THAT(banks_of(std::integral_constant<int, 64>(), 5), testing::UnorderedElementsAreArray(each));
  EXPECT_THAT(banks_of(std::integral_constant<int, 128>(), 13), testing::UnorderedElementsAreArray(each));
}

template <class Block, int size>
constexpr std::size_t bytes_of_block = sizeof(Octet) * std::max({ForwardPass<Block, half, size>::octets,
                                                                 QueryPass<Block, half, size>::octets,
                                                                 KeyPass<Block, half, size>::octets});

/// Two blocks fit, with the KiB that each reserves, into the 164 KiB of an A100. One fits into the 96 KiB of a V100 and
/// the 100 KiB of devices of compute capability 8.6 and 8.9.
TEST(TensorCoreAttentionWork, SharedMemoryIsThatOfTwoBlocks) {
  using Block = EmulatedAmpereBlock;
  for (const std::size_t each : {bytes_of_block<Block, 32>, bytes_of_block<Block, 64>, bytes_of_block<Block, 128>}) {
    EXPECT_LE(2 * (each + 1024), std::size_t{164} << 10);
    EXPECT_LE(each, std::size_t{96} << 10);
  }
}

/// A compute unit has 64 KiB. Each of its four processors runs a warp of every block.
TEST(MfmaAttentionWork, SharedMemoryIsThatOfABlockOrTwo) {
  EXPECT_LE(2 * (bytes_of_block<EmulatedMfmaBlock, 32>), std::size_t{64} << 10);
  EXPECT_LE(2 * (bytes_of_block<EmulatedMfmaBlock, 64>), std::size_t{64} << 10);
  EXPECT_LE((bytes_of_block<EmulatedMfmaBlock, 128>), std::size_t{64} << 10);
}

TEST(TensorCoreAttentionErrors, ArraysThatCopiesCannotReadAreRefused) {
  AttentionProblem<half> problem({"", 1, 1, 32, false, 0.0f, {5}});
  const Vector<half> memory("memory", 5 * 32 + 1);
  problem.out = Matrix<half>(memory.data() + 1, 5, 32);
  try {
    run(problem);
    FAIL() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not begin at a multiple of 16 bytes"));
  }
  problem.out = Kokkos::subview(Matrix<half>("wider", 5, 64), Kokkos::ALL, Kokkos::make_pair(0, 32));
  try {
    run(problem);
    FAIL() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("gaps between its rows"));
  }
}

TEST(TensorCoreAttentionErrors, ABuildForTheCpuSaysThatItHasNone) {
  AttentionProblem<half> problem({"", 1, 1, 32, false, 0.0f, {5}});
  problem.shape.kernel = AttentionKernel::tensor_cores;
  EXPECT_THROW(problem.forward(), std::invalid_argument);
  EXPECT_THROW(problem.backward(), std::invalid_argument);
  EXPECT_THAT(attention_obstacle(AttentionKernel::tensor_cores, Precision::bfloat16),
              HasSubstr("build for GPUs of AMD, or of compute capability 7.0 or later"));
  EXPECT_EQ(attention_obstacle(AttentionKernel::portable, Precision::float32, 20), "");
}
/// A device that computes powers of 2 with too few bits.
class BlockWithCoarsePowers : public EmulatedAmpereBlock {
 public:
  using EmulatedAmpereBlock::EmulatedAmpereBlock;
  float exp2(float x) const { return std::ldexp(std::round(std::ldexp(std::exp2(x), 3)), -3); }
};

/// A device whose products read the operands' halves in another order.
class BlockWithSwappedOperands : public EmulatedAmpereBlock {
 public:
  using EmulatedAmpereBlock::EmulatedAmpereBlock;
  template <class T>
  void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) const {
    EmulatedAmpereBlock::multiply_add<T>(c, a, b1, b0);
  }
};

AttentionUse use_of(const AttentionCase& c, Precision precision) {
  return {.shape = {c.heads, c.key_value_heads, c.head_size, 1.0f / std::sqrt(static_cast<float>(c.head_size)),
                    c.causal, c.window, AttentionKernel::tensor_cores},
          .precision = precision,
          .dropout = c.dropout};
}

const AttentionCase proven{"", 1, 1, 32, true, 0.1f, {}};

/// Proves passes that the emulated block of a device computes.
template <class Block, class T>
AttentionProof prove_emulated(const AttentionCase& c) {
  return prove_attention_passes<T>(ExecutionSpace(), use_of(c, precision_of<T>),
                                   [](const ExecutionSpace&, const PackedAttention<T>& arrays) { run<Block>(arrays); });
}

TEST(AttentionProof, AgreesWithEachKindOfInstructions) {
  const AttentionProof ampere = prove_emulated<EmulatedAmpereBlock, bfloat16>(proven);
  EXPECT_EQ(ampere.fault, "");
  EXPECT_EQ(ampere.kernel, AttentionKernel::tensor_cores);
  EXPECT_GT(ampere.share, 0.01) << "rounded alike";
  EXPECT_LT(ampere.share, 0.9);
  const AttentionProof volta = prove_emulated<EmulatedVoltaBlock, half>(proven);
  EXPECT_EQ(volta.fault, "");
  EXPECT_LT(volta.share, 0.9);
  const AttentionProof mfma = prove_emulated<EmulatedMfmaBlock, bfloat16>(proven);
  EXPECT_EQ(mfma.fault, "");
  EXPECT_LT(mfma.share, 0.9);
}

TEST(AttentionProof, FindsInstructionsThatComputeSomethingElse) {
  EXPECT_THAT((prove_emulated<BlockWithCoarsePowers, bfloat16>(proven).fault),
              HasSubstr("differs from the portable kernel's by"));
  EXPECT_THAT((prove_emulated<BlockWithSwappedOperands, bfloat16>(proven).fault), HasSubstr("out differs"));
}

/// Proves the portable kernel itself, with arrays that `before` changes before its passes and `after` after them.
template <class Before, class After>
std::string fault_after(const Before& before, const After& after) {
  return prove_attention_passes<bfloat16>(ExecutionSpace(), use_of(proven, Precision::bfloat16),
                                          [&](const ExecutionSpace& space, PackedAttention<bfloat16> arrays) {
                                            arrays.shape.kernel = AttentionKernel::portable;
                                            before(arrays);
                                            arrays.compute(space);
                                            after(arrays);
                                          })
      .fault;
}

constexpr auto unchanged = [](const auto&) {};

TEST(AttentionProof, FindsAMissingMaskAndOtherDropout) {
  EXPECT_EQ(fault_after(unchanged, unchanged), "");
  EXPECT_THAT(fault_after([](auto& arrays) { arrays.shape.causal = false; }, unchanged), HasSubstr("out differs"));
  EXPECT_THAT(fault_after([](auto& arrays) { arrays.dropout.site += 1; }, unchanged), HasSubstr("out differs"));
  EXPECT_THAT(fault_after([](auto& arrays) { arrays.shape.window = 100; }, unchanged), HasSubstr("out differs"));
}

/// The last row of the longest sequence, and a gradient that is 5 % too large.
TEST(AttentionProof, FindsWhatIsNotWrittenAndWrongGradients) {
  const std::size_t last = proof_lengths[0] + proof_lengths[1] - 1;
  EXPECT_EQ(fault_after(unchanged, [&](const auto& arrays) { arrays.out(last, 31) = bfloat16(std::nanf("")); }),
            "out: 1 of 19136 elements are not finite");
  const char* const names[] = {"queries", "keys", "values"};
  for (std::size_t part = 0; part < 3; ++part) {
    const auto enlarge = [&](const auto& arrays) {
      for (std::size_t i = 0; i < arrays.dqkv.extent(0) * 32; ++i) {
        bfloat16& element = arrays.dqkv(i / 32, 32 * part + i % 32);
        element = bfloat16(1.05f * static_cast<float>(element));
      }
    };
    EXPECT_THAT(fault_after(unchanged, enlarge),
                HasSubstr(std::string("the gradient of the ") + names[part] + " differs from"));
  }
}

#endif

TEST(TensorCoreAttentionChoice, TypesAreThoseOfTheInstructions) {
  EXPECT_EQ(tensor_core_obstacle(nvidia_gpu(70), Precision::float16), "");
  EXPECT_EQ(tensor_core_obstacle(nvidia_gpu(80), Precision::float16), "");
  EXPECT_EQ(tensor_core_obstacle(nvidia_gpu(80), Precision::bfloat16), "");
  EXPECT_EQ(tensor_core_obstacle(nvidia_gpu(70), Precision::bfloat16),
            "tensor cores of compute capability 7.0 take half, not bfloat16");
  EXPECT_EQ(tensor_core_obstacle(nvidia_gpu(70), Precision::float32),
            "tensor cores of compute capability 7.0 take half, not float");
  EXPECT_EQ(tensor_core_obstacle(nvidia_gpu(80), Precision::float32), "tensor cores take bfloat16 and half, not float");
  EXPECT_THAT(tensor_core_obstacle({}, Precision::float16), HasSubstr("has no kernels for tensor cores"));
}

TEST(TensorCoreAttentionErrors, FloatIsRefused) {
  AttentionProblem<float> problem({"", 1, 1, 32, false, 0.0f, {5}});
  problem.shape.kernel = AttentionKernel::tensor_cores;
  EXPECT_THROW(problem.forward(), std::invalid_argument);
  EXPECT_THROW(problem.backward(), std::invalid_argument);
}

/// One bit for each key of a query, in words.
TEST(TensorCoreAttentionScratch, IsThatOfDropout) {
  const AttentionShape shape{
      .heads = 12, .key_value_heads = 12, .head_size = 64, .kernel = AttentionKernel::tensor_cores};
  const TeamProcessor gpu{.threads = 1 << 20, .on_host = false};
  EXPECT_EQ(attention_forward_scratch(shape, 4, 380, gpu), 0u);
  EXPECT_EQ(attention_backward_scratch(shape, 4, 380, gpu), 0u);
  EXPECT_EQ(attention_forward_scratch(shape, 4, 380, gpu, 700), 12u * 700 * 48);
  EXPECT_EQ(attention_backward_scratch(shape, 4, 380, gpu, true, 700), 12u * 700 * 48);
}

}  // namespace
}  // namespace mylos::attention
