#include "core/kernels/attention/attention_dropout.hpp"

#include "core/base/error.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/team.hpp"

#include <fmt/format.h>

#include <limits>

namespace mylos::attention {
namespace {

/// Rows per team.
constexpr std::uint32_t drawn_rows = 32;

/// Draws for `drawn_rows` queries of a head of a sequence. Indices have 32 bits, whose divisions are faster.
struct DrawKeptPairs {
  ConstVector<std::size_t> starts;
  ConstVector<std::uint32_t> sample_ids;
  DropoutKey dropout;
  std::uint32_t heads, blocks;  ///< `blocks` of rows of the longest sequence
  bool causal;
  KeptPairs pairs;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t task) const {
    const auto index = static_cast<std::uint32_t>(task);
    const std::uint32_t head = index / blocks % heads, sequence = index / blocks / heads;
    const std::uint32_t begin = index % blocks * drawn_rows;
    const std::size_t start = starts(sequence);
    const auto length = static_cast<std::uint32_t>(starts(sequence + 1) - start);
    if (begin >= length) return;
    const std::uint32_t end = begin + drawn_rows < length ? begin + drawn_rows : length, seen = causal ? end : length;
    const std::uint32_t sample = sample_ids(sequence);
    team_for(team, (seen + keys_of_word - 1) / keys_of_word * drawn_rows, [=, this](std::size_t i) {
      const std::uint32_t word = static_cast<std::uint32_t>(i) / drawn_rows,
                          query = begin + static_cast<std::uint32_t>(i) % drawn_rows;
      if (query < end) *pairs.at(head, word, start + query) = draw(sample, query, head, word);
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t draw(std::uint32_t sample, std::uint32_t query, std::uint32_t head,
                                                 std::uint32_t word) const {
    constexpr unsigned groups = keys_of_word / dropout_group;
    const std::uint32_t threshold = dropout.threshold();
    std::uint32_t bits = 0;
    MYLOS_UNROLLED
    for (unsigned i = 0; i < groups; ++i) {
      const DropoutDraw draws = dropout_draw(dropout, sample, query, head, word * groups + i);
      MYLOS_UNROLLED
      for (unsigned j = 0; j < dropout_group; ++j) {
        bits |= (draws[j] < threshold ? 0u : 1u) << (i * dropout_group + j);
      }
    }
    return bits;
  }
};

}  // namespace

void draw_kept_pairs(const ExecutionSpace& space, const AttentionShape& shape, const PackedSequences& sequences,
                     const DropoutKey& dropout, const KeptPairs& pairs) {
  require(pairs.words_of_query == kept_words_of_query(sequences.longest),
          fmt::format("attention's dropout: {} words per query for sequences of up to {} rows", pairs.words_of_query,
                      sequences.longest));
  const std::size_t blocks = (sequences.longest + drawn_rows - 1) / drawn_rows;
  const std::size_t teams = sequences.sample_ids.size() * shape.heads * blocks;
  require(teams <= std::numeric_limits<std::int32_t>::max(),
          fmt::format("attention's dropout: {} sequences of up to {} rows are more than one launch takes",
                      sequences.sample_ids.size(), sequences.longest));
  for_each_row(with_work("mylos::Attention::draw_dropout", kept_pairs_work(shape, sequences)), space, teams,
               DrawKeptPairs{.starts = sequences.starts,
                             .sample_ids = sequences.sample_ids,
                             .dropout = dropout,
                             .heads = static_cast<std::uint32_t>(shape.heads),
                             .blocks = static_cast<std::uint32_t>(blocks),
                             .causal = shape.causal,
                             .pairs = pairs});
}

}  // namespace mylos::attention
