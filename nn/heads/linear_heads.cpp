#include "nn/heads/linear_heads.hpp"

#include "core/kernels/activation.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/norms/layer_norm.hpp"
#include "nn/layers/linear.hpp"

namespace mylos::nn {
namespace {

/// The arrays of a pass over T rows. Those from `dlogits` on are empty in prediction.
template <class T>
struct LinearHeadArrays {
  Vector<float> bias;        ///< (C)
  Matrix<float> logits;      ///< (T, C)
  Vector<float> row_losses;  ///< (T) if the loss of a sample is a sum over its rows
  Matrix<T> dlogits;         ///< (T, C)
  Vector<float> row_hits;    ///< (T) like row_losses
  Vector<float> column_sums;
};

struct LinearHeadSettings {
  std::string name;         ///< of the layer; its tensors are `name`.weight (C, H) and `name`.bias (C)
  std::size_t columns = 0;  ///< C
  Initializer weight, bias;
  bool has_row_losses = false;  ///< true if the loss of a sample is a sum over its rows
};

/// `Loss` computes losses (S) from the logits, and dlogits = scale * pass.loss_scale * gradient of their sum unless it
/// is empty.
template <class T, class Loss>
class LinearHead final : public Head<T> {
 public:
  using Purpose = ParameterStore::Purpose;
  using Arrays = LinearHeadArrays<T>;

  LinearHead(LinearHeadSettings settings, Loss loss) : settings_(std::move(settings)), loss_(std::move(loss)) {}

  void add_tensors(ParameterTable::Builder& builder, std::size_t width) const override {
    add_linear_tensors(builder, settings_.name, width, settings_.columns, settings_.weight, settings_.bias);
  }
  void find_tensors(const ParameterTable& table) override {
    linear_ = find_linear(table, settings_.name);
    width_ = table.tensor(linear_.weight).shape.back();
  }
  void plan(Arena& arena, const BatchShape&, const HeadInput<T>& input, Purpose purpose) const override {
    take(arena, input, purpose);
  }
  void train(const Pass& pass, const Batch& batch, float scale, const HeadInput<T>& input,
             const Vector<float>& losses) const override {
    const Arrays arrays = forward(pass, input, Purpose::training);
    loss_(pass, batch, scale, arrays, losses);
    linear_gradients<T>(pass, linear_, input.x, arrays.dlogits, arrays.column_sums);
    if (input.dx.extent(0) > 0) linear_input_gradient<T>(pass, linear_, arrays.dlogits, 0.0f, input.dx);
  }
  Matrix<float> predict(const Pass& pass, const Batch& batch, const HeadInput<T>& input,
                        const Vector<float>& losses) const override {
    const Arrays arrays = forward(pass, input, Purpose::inference);
    if (losses.extent(0) > 0) loss_(pass, batch, 0.0f, arrays, losses);
    return arrays.logits;
  }
  std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const override {
    return linear_products({.name = "head",
                            .in = width_,
                            .out = settings_.columns,
                            .precision = precision_of<T>,
                            .forward = EpilogueKind::bias,
                            .has_float_result = true},
                           shape.rows, purpose);
  }
  double training_flops(const BatchShape& shape) const override {
    return 6.0 * static_cast<double>(shape.rows) * static_cast<double>(settings_.columns * width_);
  }

 private:
  Arrays take(Arena& arena, const HeadInput<T>& input, Purpose purpose) const {
    const std::size_t rows = input.x.extent(0), columns = settings_.columns;
    const std::size_t row_losses = settings_.has_row_losses ? rows : 0;
    Arrays taken;
    taken.bias = arena.vector<float>(columns);
    taken.logits = arena.matrix<float>(rows, columns);
    taken.row_losses = arena.vector<float>(row_losses);
    if (purpose == Purpose::inference) return taken;
    taken.dlogits = arena.matrix<T>(rows, columns);
    taken.row_hits = arena.vector<float>(row_losses);
    const std::size_t sums = column_sum_workspace(rows, columns);
    taken.column_sums = input.column_sums.extent(0) >= sums ? input.column_sums : arena.vector<float>(sums);
    return taken;
  }
  Arrays forward(const Pass& pass, const HeadInput<T>& input, Purpose purpose) const {
    const Arrays arrays = take(pass.arena, input, purpose);
    convert<T, float>(pass.space, pass.parameters.values<T>(linear_.bias), arrays.bias);
    const Epilogue<float> add_bias{EpilogueKind::bias, arrays.bias, {}};
    pass.gemm.operator()<T, float>(pass.space, Transpose::no, input.x, Transpose::yes,
                                   pass.parameters.matrix<T>(linear_.weight), 0.0f, arrays.logits, add_bias);
    return arrays;
  }

  LinearHeadSettings settings_;
  Loss loss_;
  std::size_t width_ = 0;
  Linear linear_;
};

template <class T, class Loss>
std::unique_ptr<Head<T>> make_linear_head(LinearHeadSettings settings, Loss loss) {
  return std::make_unique<LinearHead<T, Loss>>(std::move(settings), std::move(loss));
}

}  // namespace

template <class T>
std::unique_ptr<Head<T>> make_span_head(const std::string& name, float initializer_range) {
  const auto loss = [](const Pass& pass, const Batch& batch, float scale, const LinearHeadArrays<T>& arrays,
                       const Vector<float>& losses) {
    span_cross_entropy<T>(pass.space, batch.sample_starts(), arrays.logits, batch.integers(names::start_labels),
                          batch.integers(names::end_labels), scale, losses, arrays.dlogits, pass.loss_scale, pass.hits);
  };
  const Initializer normal{Initializer::Kind::normal, initializer_range};
  const LinearHeadSettings settings{.name = name, .columns = 2, .weight = normal, .bias = {}};
  return make_linear_head<T>(settings, loss);
}

template <class T>
std::unique_ptr<Head<T>> make_class_head(const std::string& name, std::size_t classes, float initializer_range,
                                         float label_smoothing) {
  const auto loss = [label_smoothing](const Pass& pass, const Batch& batch, float scale,
                                      const LinearHeadArrays<T>& arrays, const Vector<float>& losses) {
    cross_entropy<T>(pass.space, arrays.logits, batch.integers(names::labels), scale, arrays.row_losses, arrays.dlogits,
                     label_smoothing, pass.loss_scale, arrays.row_hits);
    sum_sample_losses(pass.space, batch.sample_starts(), arrays.row_losses, losses, arrays.row_hits, pass.hits);
  };
  const Initializer uniform{Initializer::Kind::uniform, initializer_range};
  const LinearHeadSettings settings{
      .name = name, .columns = classes, .weight = uniform, .bias = uniform, .has_row_losses = true};
  return make_linear_head<T>(settings, loss);
}

#define MYLOS_INSTANTIATE(T)                                                      \
  template std::unique_ptr<Head<T>> make_span_head<T>(const std::string&, float); \
  template std::unique_ptr<Head<T>> make_class_head<T>(const std::string&, std::size_t, float, float);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::nn
