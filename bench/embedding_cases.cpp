#include "bench/kernel_arrays.hpp"
#include "bench/kernel_cases.hpp"
#include "core/kernels/embedding.hpp"

#include <map>

namespace mylos::bench {
namespace {

constexpr std::size_t vocabulary = 30522;

/// Tokens with the frequencies of words in texts: the i-th in proportion to 1/i (Zipf).
class Tokens {
 public:
  explicit Tokens(std::size_t rows) : packing_(rows), tokens_(rows) {
    for (std::size_t row = 0; row < rows; ++row) {
      const double uniform = static_cast<double>((row * 2654435761u) & 0xffffffu) / 0x1p24;
      tokens_[row] = static_cast<std::int32_t>(std::pow(static_cast<double>(vocabulary), uniform)) - 1;
      ++counts_[tokens_[row]];
    }
    packing_.batch().set_indices("tokens", tokens_);
  }

  const Batch& batch() const { return packing_.batch(); }
  const std::vector<std::int32_t>& host() const { return tokens_; }
  std::size_t distinct() const { return counts_.size(); }

 private:
  PackedRows packing_;
  std::vector<std::int32_t> tokens_;
  std::map<std::int32_t, std::size_t> counts_;
};

template <class T>
class EmbeddingLookup final : public KernelCase {
 public:
  EmbeddingLookup(std::size_t bytes, std::size_t columns)
      : tokens_(at_least_one(bytes / (columns * sizeof(T)))),
        table_(filled_matrix<T>(1, vocabulary, columns)),
        y_(empty_matrix<T>(tokens_.host().size(), columns)) {}

  double bytes() const override {
    const std::size_t row = y_.columns * sizeof(T);
    return static_cast<double>(y_.rows * (row + sizeof(std::int32_t)) + tokens_.distinct() * row);
  }
  void launch(const ExecutionSpace& space) const override {
    embedding_lookup<T>(space, tokens_.batch().integers("tokens"), table_, false, y_);
  }
  void check() const override {
    check_rows("embedding", y_, [&](std::size_t row, std::size_t i) {
      return value(1, static_cast<std::size_t>(tokens_.host()[row]) * y_.columns + i);
    });
  }

 private:
  Tokens tokens_;
  OwnMatrix<T> table_, y_;
};

template <class T>
class EmbeddingGradient final : public KernelCase {
 public:
  EmbeddingGradient(std::size_t bytes, std::size_t columns)
      : tokens_(at_least_one(bytes / (columns * sizeof(T)))),
        dy_(filled_matrix<T>(1, tokens_.host().size(), columns)),
        dtable_{Vector<float>("mylos::bench::dtable", vocabulary * columns), vocabulary, columns} {}

  double bytes() const override {
    return static_cast<double>(dy_.rows * (dy_.columns * sizeof(T) + sizeof(std::uint32_t)) +
                               tokens_.distinct() * dy_.columns * 2 * sizeof(float));
  }
  void launch(const ExecutionSpace& space) const override {
    embedding_gradient<T>(space, tokens_.batch().groups("tokens"), dy_, dtable_);
  }
  void check() const override {
    const std::size_t columns = dy_.columns;
    for (const std::size_t position : positions_in(dy_.rows)) {
      const std::int32_t token = tokens_.host()[position];
      const std::vector<float> actual = row_of(dtable_, static_cast<std::size_t>(token));
      std::vector<double> sum(columns, 0.0);
      for (std::size_t row = 0; row < dy_.rows; ++row) {
        if (tokens_.host()[row] != token) continue;
        for (std::size_t i = 0; i < columns; ++i) sum[i] += value(1, row * columns + i);
      }
      for (std::size_t i = 0; i < columns; ++i) {
        check_sum("the embedding's gradient", static_cast<std::size_t>(token), i, actual[i], sum[i], exact_sum_bound);
      }
    }
  }

 private:
  Tokens tokens_;
  OwnMatrix<T> dy_;
  OwnMatrix<float> dtable_;
};

}  // namespace

std::vector<KernelKind> embedding_kinds() {
  return {{"embedding", make_case<EmbeddingLookup>}, {"embedding-gradient", make_case<EmbeddingGradient>}};
}

}  // namespace mylos::bench
