#pragma once

#include "nn/model.hpp"

/// The end of a network: logits and a loss, computed from the vectors of a body.
namespace mylos::nn {

/// Names of the batch arrays that networks read besides the positions. Those of indices must have been passed to
/// Batch::set_indices, and Batch::group_positions called for training.
namespace names {
inline constexpr const char* tokens = "tokens";      ///< (T), indices in [0, V)
inline constexpr const char* segments = "segments";  ///< (T), indices in [0, token types)
inline constexpr const char* pixels = "pixels";      ///< (T H W C) bytes of images in NHWC, normalised by the network
inline constexpr const char* pixel_values =
    "pixel_values";                              ///< (T H W C) floats, used unchanged; take precedence over `pixels`
inline constexpr const char* labels = "labels";  ///< (T), class of the row; ignored if negative
inline constexpr const char* start_labels = "start_labels";  ///< (S), row within the sequence; ignored if beyond it
inline constexpr const char* end_labels = "end_labels";      ///< (S)
}  // namespace names

/// The arrays through which a body and a head meet.
template <class T>
struct HeadInput {
  Matrix<T> x;                ///< (T, H), the result of the body
  Matrix<T> dx;               ///< (T, H), its gradient, which the head writes; may alias x; empty in prediction, and
                              ///< in training if the whole body is frozen
  Vector<float> column_sums;  ///< workspace of the body that the head may use too; may be empty
};

/// A head with its loss. It computes its forward and backward pass in one call, so nothing is kept between calls.
/// `plan` takes the same memory as `train` and `predict`.
template <class T>
class Head {
 public:
  using Purpose = ParameterStore::Purpose;
  virtual ~Head() = default;

  /// Adds the tensors of the head to the current unit, for rows of H = `width` elements.
  virtual void add_tensors(ParameterTable::Builder& builder, std::size_t width) const = 0;
  /// Looks up the tensors in the finished table.
  virtual void find_tensors(const ParameterTable& table) = 0;

  virtual void plan(Arena& arena, const BatchShape& shape, const HeadInput<T>& input, Purpose purpose) const = 0;
  /// The head's part of Model::train: also writes input.dx = scale * pass.loss_scale * gradient of the sum of losses.
  virtual void train(const Pass& pass, const Batch& batch, float scale, const HeadInput<T>& input,
                     const Vector<float>& losses) const = 0;
  /// The head's part of Model::predict.
  virtual Matrix<float> predict(const Pass& pass, const Batch& batch, const HeadInput<T>& input,
                                const Vector<float>& losses) const = 0;

  /// Returns the matrix products of a pass.
  virtual std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const = 0;
  /// Returns the floating-point operations of a training pass.
  virtual double training_flops(const BatchShape& shape) const = 0;
};

/// losses (S) = the sum of row_losses (T) over each sample's rows [starts[s], starts[s + 1]). Does the same with hits
/// (S) and row_hits (T), unless `hits` has no extent.
void sum_sample_losses(const ExecutionSpace& space, const ConstVector<std::size_t>& starts,
                       const ConstVector<float>& row_losses, const Vector<float>& losses,
                       const ConstVector<float>& row_hits = {}, const Vector<float>& hits = {});

}  // namespace mylos::nn
