#include "nn/heads/vocabulary_head.hpp"

#include "core/base/error.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/largest_column.hpp"
#include "nn/layers/linear.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::nn {
namespace {

using Purpose = ParameterStore::Purpose;

constexpr std::size_t chunk_elements = std::size_t{1} << 25;  // 128 MiB of float logits
constexpr std::size_t chunk_multiple = 128;                   // rows that a matrix product processes at once

/// Returns the rows per chunk. Each chunk reads and writes the whole gradient of the head, (V, H), so a few large
/// chunks move fewer bytes. The size depends on V alone and not on free memory, so that the results do not depend on it
/// either.
std::size_t chunk_rows(std::size_t vocabulary) {
  const std::size_t rows = chunk_elements / vocabulary;
  return std::max(rows - rows % chunk_multiple, chunk_multiple);
}

/// Rows [begin, end) of a matrix.
template <class T>
Matrix<T> row_range(const Matrix<T>& whole, std::size_t begin, std::size_t end) {
  return Matrix<T>(whole.data() + begin * whole.extent(1), end - begin, whole.extent(1));
}

template <class T>
struct VocabularyArrays {
  Vector<float> row_losses;  ///< (T)
  Matrix<float> logits;      ///< (R, V)
  Matrix<T> dlogits;         ///< (R, V); empty in prediction
  Vector<float> likeliest;   ///< (T); empty in training
};

/// Rows [begin, end) of a batch, and their logits.
struct LogitsChunk {
  std::size_t begin, end;
  Matrix<float> logits;
};

template <class T>
class VocabularyHead final : public Head<T> {
 public:
  explicit VocabularyHead(const VocabularyHeadSettings& settings)
      : settings_(settings), chunk_(settings.chunk > 0 ? settings.chunk : chunk_rows(settings.vocabulary)) {}

  void add_tensors(ParameterTable::Builder& builder, std::size_t width) const override {
    if (!settings_.lender.empty()) {
      builder.borrow(settings_.lender);
      return;
    }
    builder.tensor(settings_.weight, {settings_.vocabulary, width},
                   {Initializer::Kind::normal, settings_.initializer_range});
  }
  void find_tensors(const ParameterTable& table) override {
    weight_ = table.find(settings_.weight);
    const auto& shape = table.tensor(weight_).shape;
    require(shape.size() == 2 && shape.front() == settings_.vocabulary,
            fmt::format("vocabulary head: {} is not a matrix of {} rows", settings_.weight, settings_.vocabulary));
    width_ = shape.back();
  }

  void plan(Arena& arena, const BatchShape&, const HeadInput<T>& input, Purpose purpose) const override {
    take(arena, input, purpose);
  }
  void train(const Pass& pass, const Batch& batch, float scale, const HeadInput<T>& input,
             const Vector<float>& losses) const override;
  Matrix<float> predict(const Pass& pass, const Batch& batch, const HeadInput<T>& input,
                        const Vector<float>& losses) const override;
  std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const override;
  double training_flops(const BatchShape& shape) const override {
    return 6.0 * static_cast<double>(shape.rows) * static_cast<double>(settings_.vocabulary) *
           static_cast<double>(width_);
  }

 private:
  VocabularyArrays<T> take(Arena& arena, const HeadInput<T>& input, Purpose purpose) const {
    const std::size_t rows = input.x.extent(0), chunk = std::min(chunk_, rows), vocabulary = settings_.vocabulary;
    const bool trains = purpose == Purpose::training;
    return {arena.vector<float>(rows), arena.matrix<float>(chunk, vocabulary),
            arena.matrix<T>(trains ? chunk : 0, vocabulary), arena.vector<float>(trains ? 0 : rows)};
  }
  /// Computes the logits of one chunk of rows after the other, and calls `action` with each.
  template <class F>
  void for_each_chunk(const Pass& pass, const ConstMatrix<T>& x, const VocabularyArrays<T>& arrays,
                      const F& action) const;
  /// Computes the losses of a chunk's rows, and dlogits unless it is empty.
  void chunk_loss(const Pass& pass, const Batch& batch, float scale, const LogitsChunk& chunk,
                  const VocabularyArrays<T>& arrays, const Matrix<T>& dlogits) const {
    cross_entropy<T>(pass.space, chunk.logits, slice(batch.integers(names::labels), chunk.begin, chunk.end), scale,
                     slice(arrays.row_losses, chunk.begin, chunk.end), dlogits, 0.0f, pass.loss_scale);
  }

  VocabularyHeadSettings settings_;
  std::size_t chunk_, weight_ = 0, width_ = 0;
};

template <class T>
template <class F>
void VocabularyHead<T>::for_each_chunk(const Pass& pass, const ConstMatrix<T>& x, const VocabularyArrays<T>& arrays,
                                       const F& action) const {
  const ConstMatrix<T> weight = pass.parameters.matrix<T>(weight_);
  for (std::size_t begin = 0; begin < x.extent(0); begin += chunk_) {
    const std::size_t end = std::min(begin + chunk_, x.extent(0));
    const Matrix<float> logits = row_range(arrays.logits, 0, end - begin);
    pass.gemm.operator()<T, float>(pass.space, Transpose::no, row_range(x, begin, end), Transpose::yes, weight, 0.0f,
                                   logits);
    action(LogitsChunk{begin, end, logits});
  }
}

template <class T>
void VocabularyHead<T>::train(const Pass& pass, const Batch& batch, float scale, const HeadInput<T>& input,
                              const Vector<float>& losses) const {
  const std::size_t labels = batch.integers(names::labels).size(), rows = batch.shape().rows;
  require(labels == rows, fmt::format("vocabulary head: {} labels for a batch of {} rows", labels, rows));
  const VocabularyArrays<T> arrays = take(pass.arena, input, Purpose::training);
  const ConstMatrix<T> weight = pass.parameters.matrix<T>(weight_);
  const bool trains = pass.parameters.trains(weight_);
  const bool begins = trains && pass.parameters.begins_gradient(weight_, 1);
  const Matrix<float> dweight = trains ? pass.parameters.gradient_matrix(weight_) : Matrix<float>();
  for_each_chunk(pass, input.x, arrays, [&](const LogitsChunk& chunk) {
    const Matrix<T> dlogits = row_range(arrays.dlogits, 0, chunk.end - chunk.begin);
    chunk_loss(pass, batch, scale, chunk, arrays, dlogits);
    if (trains) {
      pass.gemm.operator()<T, float>(pass.space, Transpose::yes, dlogits, Transpose::no,
                                     ConstMatrix<T>(row_range(input.x, chunk.begin, chunk.end)),
                                     begins && chunk.begin == 0 ? 0.0f : 1.0f, dweight);
    }
    if (input.dx.extent(0) == 0) return;
    pass.gemm.operator()<T, T>(pass.space, Transpose::no, dlogits, Transpose::no, weight, 0.0f,
                               row_range(input.dx, chunk.begin, chunk.end));
  });
  sum_sample_losses(pass.space, batch.sample_starts(), arrays.row_losses, losses);
}

template <class T>
Matrix<float> VocabularyHead<T>::predict(const Pass& pass, const Batch& batch, const HeadInput<T>& input,
                                         const Vector<float>& losses) const {
  const VocabularyArrays<T> arrays = take(pass.arena, input, Purpose::inference);
  for_each_chunk(pass, input.x, arrays, [&](const LogitsChunk& chunk) {
    largest_column(pass.space, chunk.logits, slice(arrays.likeliest, chunk.begin, chunk.end));
    if (losses.extent(0) > 0) chunk_loss(pass, batch, 0.0f, chunk, arrays, {});
  });
  if (losses.extent(0) > 0) sum_sample_losses(pass.space, batch.sample_starts(), arrays.row_losses, losses);
  return Matrix<float>(arrays.likeliest.data(), input.x.extent(0), 1);
}

/// A number of full chunks, and one of the remaining rows.
template <class T>
std::vector<GemmProduct> VocabularyHead<T>::products(const BatchShape& shape, Purpose purpose) const {
  std::vector<GemmProduct> all;
  const auto add = [&](const char* name, std::size_t count, std::size_t chunk) {
    if (count == 0 || chunk == 0) return;
    for (GemmProduct& product : linear_products({.name = name,
                                .in = width_,
                                .out = settings_.vocabulary,
                                .precision = precision_of<T>,
                                .has_float_result = true,
                                .count = count},
                                                chunk, purpose)) {
      all.push_back(std::move(product));
    }
  };
  add("head", shape.rows / chunk_, chunk_);
  add(shape.rows < chunk_ ? "head" : "head-rest", 1, shape.rows % chunk_);
  return all;
}

}  // namespace

template <class T>
std::unique_ptr<Head<T>> make_vocabulary_head(const VocabularyHeadSettings& settings) {
  return std::make_unique<VocabularyHead<T>>(settings);
}

template std::unique_ptr<Head<float>> make_vocabulary_head<float>(const VocabularyHeadSettings&);
template std::unique_ptr<Head<bfloat16>> make_vocabulary_head<bfloat16>(const VocabularyHeadSettings&);
template std::unique_ptr<Head<half>> make_vocabulary_head<half>(const VocabularyHeadSettings&);

}  // namespace mylos::nn
