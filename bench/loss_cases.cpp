#include "bench/kernel_arrays.hpp"
#include "bench/kernel_cases.hpp"
#include "core/kernels/cross_entropy.hpp"

#include <map>

namespace mylos::bench {
namespace {

constexpr std::size_t sequence_rows = 128;
constexpr std::size_t bert_vocabulary = 30522, llama_3_vocabulary = 128256;

/// Returns the logarithm of the sum of exponentials of `count` values value(array, first + i * stride).
double log_sum_exp(std::uint32_t array, std::size_t first, std::size_t stride, std::size_t count) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(value(array, first + i * stride)));
  return std::log(sum);
}

/// Start and end of answers, as in question answering: two softmaxes over the rows of each sequence.
template <class T>
class SpanLoss final : public KernelCase {
 public:
  SpanLoss(std::size_t bytes, std::size_t)
      : sequences_(at_least_one(bytes / (2 * (sizeof(float) + sizeof(T))) / sequence_rows)),
        logits_(filled_matrix<float>(1, sequences_ * sequence_rows, 2)),
        dlogits_(empty_matrix<T>(logits_.rows, 2)),
        losses_("mylos::bench::losses", sequences_) {
    std::vector<std::size_t> starts;
    std::vector<std::int32_t> labels;
    for (std::size_t s = 0; s <= sequences_; ++s) starts.push_back(s * sequence_rows);
    for (std::size_t s = 0; s < sequences_; ++s) labels.push_back(static_cast<std::int32_t>(s % sequence_rows));
    starts_ = uploaded(starts);
    labels_ = uploaded(labels);
  }

  double bytes() const override {
    const std::size_t sequence = sizeof(std::size_t) + 2 * sizeof(std::int32_t) + sizeof(float);
    return static_cast<double>(logits_.memory.size() * (sizeof(float) + sizeof(T)) + sequences_ * sequence);
  }
  void launch(const ExecutionSpace& space) const override {
    span_cross_entropy<T>(space, starts_, logits_, labels_, labels_, 1.0f, losses_, dlogits_);
  }
  void check() const override {
    const OwnMatrix<float> losses{losses_, sequences_, 1};
    for (const std::size_t s : positions_in(sequences_)) {
      const std::size_t first = 2 * s * sequence_rows, label = first + 2 * (s % sequence_rows);
      double loss = 0.0;
      for (const std::size_t column : {0, 1}) {
        loss += 0.5 * (log_sum_exp(1, first + column, 2, sequence_rows) - value(1, label + column));
      }
      check_value("a span's loss", s, 0, row_of(losses, s)[0], loss, tolerance<float>());
    }
    check_rows("the gradient of a span's loss", dlogits_, [&](std::size_t row, std::size_t i) {
      const std::size_t s = row / sequence_rows;
      const double share =
          std::exp(value(1, 2 * row + i) - log_sum_exp(1, 2 * s * sequence_rows + i, 2, sequence_rows));
      return 0.5 * (share - (row % sequence_rows == s % sequence_rows ? 1.0 : 0.0));
    });
  }

 private:
  std::size_t sequences_;
  OwnMatrix<float> logits_;
  OwnMatrix<T> dlogits_;
  Vector<float> losses_;
  Vector<std::size_t> starts_;
  Vector<std::int32_t> labels_;
};

template <class T, std::size_t vocabulary>
class VocabularyLoss final : public KernelCase {
 public:
  VocabularyLoss(std::size_t bytes, std::size_t)
      : logits_(filled_matrix<float>(1, at_least_one(bytes / (vocabulary * (sizeof(float) + sizeof(T)))), vocabulary)),
        dlogits_(empty_matrix<T>(logits_.rows, vocabulary)),
        losses_("mylos::bench::losses", logits_.rows),
        labels_(uploaded(std::vector<std::int32_t>(logits_.rows, label))) {}

  double bytes() const override {
    return static_cast<double>(logits_.rows * (vocabulary * (sizeof(float) + sizeof(T)) + 2 * sizeof(float)));
  }
  void launch(const ExecutionSpace& space) const override {
    cross_entropy<T>(space, logits_, labels_, 1.0f, losses_, dlogits_);
  }
  void check() const override {
    const OwnMatrix<float> losses{losses_, logits_.rows, 1};
    std::map<std::size_t, double> sums;
    for (const std::size_t row : positions_in(logits_.rows)) {
      sums[row] = log_sum_exp(1, row * vocabulary, 1, vocabulary);
      check_value("a loss", row, 0, row_of(losses, row)[0], sums[row] - value(1, row * vocabulary + label),
                  tolerance<float>());
    }
    check_rows("a loss's gradient", dlogits_, [&](std::size_t row, std::size_t i) {
      return std::exp(value(1, row * vocabulary + i) - sums[row]) - (i == label ? 1.0 : 0.0);
    });
  }

 private:
  static constexpr std::int32_t label = 1234;
  OwnMatrix<float> logits_;
  OwnMatrix<T> dlogits_;
  Vector<float> losses_;
  Vector<std::int32_t> labels_;
};

template <class T>
using BertLoss = VocabularyLoss<T, bert_vocabulary>;
template <class T>
using LlamaLoss = VocabularyLoss<T, llama_3_vocabulary>;

}  // namespace

std::vector<KernelKind> loss_kinds() {
  return {{"span-loss", make_case<SpanLoss>},
          {"vocabulary-loss", make_case<BertLoss>},
          {"large-vocabulary-loss", make_case<LlamaLoss>}};
}

}  // namespace mylos::bench
