#include "core/kernels/cross_entropy.hpp"

#include "core/base/error.hpp"
#include "core/kernels/chunks.hpp"
#include "core/kernels/math.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

/// The logits of one softmax: `count` elements with stride `stride`.
struct Logits {
  const float* data;
  std::size_t stride, count;

  KOKKOS_FORCEINLINE_FUNCTION float operator()(std::size_t i) const { return data[i * stride]; }
  /// Returns whether a label takes part in the loss.
  KOKKOS_FORCEINLINE_FUNCTION bool counts(std::int32_t label) const {
    return label >= 0 && static_cast<std::size_t>(label) < count;
  }
};

/// log sum exp of the logits of one softmax, and the largest of them.
struct Normalizer {
  float log_sum = 0.0f, largest = 0.0f;
};

/// The loss of one softmax, and whether no logit is larger than the label's.
struct SoftmaxLoss {
  float loss = 0.0f;
  bool hits = false;
};

/// The maximum is subtracted to prevent overflow.
template <class Team>
KOKKOS_FORCEINLINE_FUNCTION Normalizer log_sum_exp(const Team& team, const Logits& logits) {
  const float largest = team_max(team, logits.count, [=](std::size_t i) { return logits(i); });
  const float sum = team_sum(team, logits.count, [=](std::size_t i) { return exp_approximate(logits(i) - largest); });
  return {largest + Kokkos::log(sum), largest};
}

/// Returns the loss of one softmax. dlogits, with the logits' stride, = scale * (softmax - target), or 0 if the label
/// is ignored. A null dlogits is not written.
template <class Team, class T>
KOKKOS_FORCEINLINE_FUNCTION SoftmaxLoss softmax_loss(const Team& team, const Logits& logits, std::int32_t label,
                                                     float scale, T* dlogits, float smoothing = 0.0f) {
  const bool counts = logits.counts(label);
  const Normalizer whole = counts ? log_sum_exp(team, logits) : Normalizer();
  const float normalizer = whole.log_sum;
  const float share = smoothing / static_cast<float>(logits.count);  // probability of each class from smoothing
  if (dlogits != nullptr) {
    const auto target = static_cast<std::size_t>(label);
    team_for(team, logits.count, [=](std::size_t i) {
      const float probability = counts ? exp_approximate(logits(i) - normalizer) : 0.0f;
      const float expected = counts ? share + (i == target ? 1.0f - smoothing : 0.0f) : 0.0f;
      dlogits[i * logits.stride] = T(scale * (probability - expected));
    });
  }
  if (!counts) return {};
  const float of_label = logits(static_cast<std::size_t>(label)), loss = normalizer - of_label;
  const bool hits = of_label >= whole.largest;
  if (smoothing == 0.0f) return {loss, hits};
  // The mean loss over the classes, computed without a difference of large sums.
  const float others = share * team_sum(team, logits.count, [=](std::size_t i) { return normalizer - logits(i); });
  return {(1.0f - smoothing) * loss + others, hits};
}

KOKKOS_FORCEINLINE_FUNCTION void put_hit(const Vector<float>& hits, std::size_t i, bool is_hit) {
  if (hits.extent(0) > 0) hits(i) = is_hit ? 1.0f : 0.0f;
}

/// Threads of a device's team for a row of many classes. The second pass over a row should then find it in cache: with
/// two such teams per multiprocessor, rows of 32,000 classes take 28 MB on an A100 and 34 MB on an H100.
constexpr int class_loss_team = 512;

/// Returns e^(a - b) for a <= b.
KOKKOS_FORCEINLINE_FUNCTION float exp_of_difference(float a, float b) {
  return exp2_approximate((a - b) * 1.44269504f);
}

/// The largest logit so far, and the sum of exponentials of the differences from it: both in one pass (Milakov,
/// Gimelshein 2018).
struct RunningSum {
  // Finite, because differences between infinities are NaN, and a logit may be -infinity.
  static constexpr float least = -Kokkos::Experimental::finite_max_v<float>;
  float largest = least, sum = 0.0f;

  template <std::size_t width, std::size_t count>
  KOKKOS_FORCEINLINE_FUNCTION void add(const Chunk<float, width> (&logits)[count]) {
    const float before = largest;
    MYLOS_UNROLLED
    for (unsigned i = 0; i < count * width; ++i) largest = larger_of_two(largest, logits[i / width][i % width]);
    sum *= exp_of_difference(before, largest);
    MYLOS_UNROLLED
    for (unsigned i = 0; i < count * width; ++i) sum += exp_of_difference(logits[i / width][i % width], largest);
  }
};

/// The same of a row, on all threads of a device's team. A thread reads four chunks ahead. The order of the sum depends
/// on the row's address modulo 16, too.
template <class Team>
KOKKOS_FORCEINLINE_FUNCTION Normalizer log_sum_exp_of_row(const Team& team, const float* logits, std::size_t count) {
  constexpr std::size_t width = access_bytes / sizeof(float), ahead = 4;
  const std::size_t before = elements_before_access(count, logits), whole = (count - before) / width;
  const auto stride = static_cast<std::size_t>(team.team_size()), mine = static_cast<std::size_t>(team.team_rank());
  RunningSum all;
  for (std::size_t first = mine; first < whole; first += ahead * stride) {
    Chunk<float, width> read[ahead];
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < ahead; ++k) {
      for (unsigned j = 0; j < width; ++j) read[k].set(j, -Kokkos::Experimental::infinity_v<float>);
      if (first + k * stride < whole) read[k].load(logits + before + (first + k * stride) * width);
    }
    all.add(read);
  }
  for (std::size_t i = mine; i < count - whole * width; i += stride) {
    all.add<1, 1>({{logits[i < before ? i : i + whole * width]}});
  }
  float largest[1] = {all.largest};
  combine_over_team<&larger_of_two, class_loss_team>(team, largest, RunningSum::least);
  float sum[1] = {all.sum * exp_of_difference(all.largest, largest[0])};
  add_over_team<class_loss_team>(team, sum);
  return {largest[0] + Kokkos::log(sum[0]), largest[0]};
}

/// Calls body(element of each array ...) for the n elements of a row, in chunks from the first element at which all
/// arrays are aligned: rows of an odd length begin anywhere.
template <class Team, class Body, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void map_row(const Team& team, std::size_t n, const Body& body, const Arrays&... arrays) {
  const std::size_t before = elements_before_access(n, arrays...);
  team_for(team, before, [=](std::size_t i) { body(pointer_of(arrays)[i]...); });
  team_map(team, n - before, body, from_element(arrays, before)...);
}

/// The factor on a gradient.
struct GradientFactor {
  float scale;
  ConstVector<float> loss_scale;  ///< (1), or empty

  KOKKOS_FORCEINLINE_FUNCTION float operator()() const {
    return loss_scale.extent(0) == 0 ? scale : scale * loss_scale(0);
  }
};

template <class T>
struct SpanLoss {
  ConstVector<std::size_t> starts;
  ConstMatrix<float> logits;
  ConstVector<std::int32_t> start_labels, end_labels;
  GradientFactor factor;
  Vector<float> losses;
  Matrix<T> dlogits;
  Vector<float> hits;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t sample) const {
    const std::size_t begin = starts(sample), count = starts(sample + 1) - begin;
    const float* const in = logits.data() + 2 * begin;
    T* const out = dlogits.size() > 0 ? dlogits.data() + 2 * begin : nullptr;
    const float scale = 0.5f * factor();
    const SoftmaxLoss start = softmax_loss(team, Logits{in, 2, count}, start_labels(sample), scale, out);
    T* const out_end = out == nullptr ? nullptr : out + 1;
    const SoftmaxLoss end = softmax_loss(team, Logits{in + 1, 2, count}, end_labels(sample), scale, out_end);
    losses(sample) = 0.5f * (start.loss + end.loss);
    put_hit(hits, sample, start.hits && end.hits);
  }
};

template <class T>
struct ClassLoss {
  ConstMatrix<float> logits;
  ConstVector<std::int32_t> labels;
  GradientFactor factor;
  Vector<float> losses;
  Matrix<T> dlogits;
  float smoothing;
  Vector<float> hits;

  KOKKOS_INLINE_FUNCTION void operator()(const HostTeam& team, std::size_t row) const {
    const Logits in{logits.data() + row * logits.extent(1), 1, logits.extent(1)};
    const SoftmaxLoss loss = softmax_loss(team, in, labels(row), factor(), gradient(row), smoothing);
    losses(row) = loss.loss;
    put_hit(hits, row, loss.hits);
  }

  /// Reads the logits twice, and writes the gradient once.
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t row) const {
    const Logits in{logits.data() + row * logits.extent(1), 1, logits.extent(1)};
    T* const out = gradient(row);
    if (!in.counts(labels(row))) {
      losses(row) = 0.0f;
      put_hit(hits, row, false);
      if (out != nullptr)
        team_map(
            team, in.count, [](T& d) { d = T(0.0f); }, written(out));
      return;
    }
    const auto target = static_cast<std::size_t>(labels(row));
    const Normalizer whole = log_sum_exp_of_row(team, in.data, in.count);
    const float normalizer = whole.log_sum, scale = factor();
    const float share = smoothing / static_cast<float>(in.count), loss = normalizer - in(target);
    const auto gradient_of = [=](float logit, float expected) {
      return T(scale * (exp_of_difference(logit, normalizer) - expected));
    };
    float others[1] = {0.0f};  // the sum of the losses of all classes, without a difference of large sums
    if (out != nullptr) {
      const auto each = [&](const float& logit, T& d) {
        d = gradient_of(logit, share);
        others[0] += normalizer - logit;
      };
      map_row(team, in.count, each, in.data, written(out));
      team_barrier(team);
      if (team.team_rank() == 0) out[target] = gradient_of(in(target), share + (1.0f - smoothing));
    } else if (smoothing != 0.0f) {
      team_map(
          team, in.count, [&](const float& logit) { others[0] += normalizer - logit; }, in.data);
    }
    if (smoothing != 0.0f) add_over_team<class_loss_team>(team, others);
    put_hit(hits, row, in(target) >= whole.largest);
    losses(row) = smoothing == 0.0f ? loss : (1.0f - smoothing) * loss + share * others[0];
  }

  KOKKOS_FORCEINLINE_FUNCTION T* gradient(std::size_t row) const {
    return dlogits.size() > 0 ? dlogits.data() + row * logits.extent(1) : nullptr;
  }
};

template <class T>
void check_gradient(const ConstMatrix<float>& logits, const Matrix<T>& dlogits) {
  require(dlogits.size() == 0 || (dlogits.extent(0) == logits.extent(0) && dlogits.extent(1) == logits.extent(1)),
          fmt::format("cross entropy: logits are {} x {}, their gradient {} x {}", logits.extent(0), logits.extent(1),
                      dlogits.extent(0), dlogits.extent(1)));
}

/// The maximum, the difference from it, exponentials and their sum; for gradients, exponentials again.
template <class T>
Work softmax_work(std::size_t logits, const Matrix<T>& dlogits) {
  return work_of(logits, exp_flops + 3.0, sizeof(float)) + work_of(dlogits.size(), exp_flops + 3.0, sizeof(T));
}

}  // namespace

template <class T>
void span_cross_entropy(const ExecutionSpace& space, const ConstVector<std::size_t>& sequence_starts,
                        const ConstMatrix<float>& logits, const ConstVector<std::int32_t>& start_labels,
                        const ConstVector<std::int32_t>& end_labels, float scale, const Vector<float>& losses,
                        const Matrix<T>& dlogits, const ConstVector<float>& loss_scale, const Vector<float>& hits) {
  const std::size_t samples = losses.size();
  require(logits.extent(1) == 2, fmt::format("span loss: logits have {} columns, not 2", logits.extent(1)));
  require(sequence_starts.size() == samples + 1 && start_labels.size() == samples && end_labels.size() == samples,
          fmt::format("span loss: {} losses for {} boundaries, {} start and {} end labels", samples,
                      sequence_starts.size(), start_labels.size(), end_labels.size()));
  check_gradient(logits, dlogits);
  for_each_row(
      with_work("mylos::cross_entropy::span", softmax_work(logits.size(), dlogits)), space, samples,
      SpanLoss<T>{sequence_starts, logits, start_labels, end_labels, {scale, loss_scale}, losses, dlogits, hits});
}

template <class T>
void cross_entropy(const ExecutionSpace& space, const ConstMatrix<float>& logits,
                   const ConstVector<std::int32_t>& labels, float scale, const Vector<float>& losses,
                   const Matrix<T>& dlogits, float label_smoothing, const ConstVector<float>& loss_scale,
                   const Vector<float>& hits) {
  require(losses.size() == logits.extent(0) && labels.size() == logits.extent(0),
          fmt::format("cross entropy: {} rows of logits, {} labels, {} losses", logits.extent(0), labels.size(),
                      losses.size()));
  require(label_smoothing >= 0.0f && label_smoothing <= 1.0f,
          fmt::format("cross entropy: label smoothing {} is not between 0 and 1", label_smoothing));
  check_gradient(logits, dlogits);
  for_each_row<Kokkos::LaunchBounds<class_loss_team, 2>>(
      with_work("mylos::cross_entropy::classes", softmax_work(logits.size(), dlogits)), space, logits.extent(0),
      ClassLoss<T>{logits, labels, {scale, loss_scale}, losses, dlogits, label_smoothing, hits},
      {.threads = team_size_for(space, logits.extent(1) / 8, class_loss_team)});
}

#define MYLOS_INSTANTIATE(T)                                                                                           \
  template void span_cross_entropy<T>(const ExecutionSpace&, const ConstVector<std::size_t>&,                          \
                                      const ConstMatrix<float>&, const ConstVector<std::int32_t>&,                     \
                                      const ConstVector<std::int32_t>&, float, const Vector<float>&, const Matrix<T>&, \
                                      const ConstVector<float>&, const Vector<float>&);                                \
  template void cross_entropy<T>(const ExecutionSpace&, const ConstMatrix<float>&, const ConstVector<std::int32_t>&,   \
                                 float, const Vector<float>&, const Matrix<T>&, float, const ConstVector<float>&,      \
                                 const Vector<float>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
