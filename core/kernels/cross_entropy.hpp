#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// Softmax and cross entropy fused, with the gradient: loss = log sum exp(logits) - logits[label]. Everything is float
/// except for the gradient. Deterministic.
namespace mylos {

/// Span extraction over packed sequences. logits (T, 2): start and end of each row; labels (S): row within its
/// sequence, ignored if negative or beyond the sequence. losses (S) = (start + end) / 2, 0 for ignored ones. dlogits
/// (T, 2) = scale * loss_scale (1) * gradient of the sum of losses; not computed if it has no extent. An empty
/// loss_scale counts as 1. hits (S), not computed if it has no extent: 1 where no start and no end of the sequence has
/// a larger logit than the labels, else 0.
template <class T>
void span_cross_entropy(const ExecutionSpace& space, const ConstVector<std::size_t>& sequence_starts,
                        const ConstMatrix<float>& logits, const ConstVector<std::int32_t>& start_labels,
                        const ConstVector<std::int32_t>& end_labels, float scale, const Vector<float>& losses,
                        const Matrix<T>& dlogits, const ConstVector<float>& loss_scale = {},
                        const Vector<float>& hits = {});

/// Classification. logits (R, C), labels (R) (ignored if negative): losses (R), and dlogits (R, C) = scale * loss_scale
/// (1) * gradient of their sum; not computed if it has no extent. An empty loss_scale counts as 1. With label smoothing
/// e in [0, 1] the target is (1 - e) one-hot(label) + e / C (Szegedy et al. 2016, as in PyTorch). hits (R), not
/// computed if it has no extent: 1 where no class has a larger logit than the label, else 0.
template <class T>
void cross_entropy(const ExecutionSpace& space, const ConstMatrix<float>& logits,
                   const ConstVector<std::int32_t>& labels, float scale, const Vector<float>& losses,
                   const Matrix<T>& dlogits, float label_smoothing = 0.0f, const ConstVector<float>& loss_scale = {},
                   const Vector<float>& hits = {});

}  // namespace mylos
