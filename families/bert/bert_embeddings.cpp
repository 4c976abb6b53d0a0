#include "families/bert/bert_embeddings.hpp"

#include "core/kernels/embedding.hpp"
#include "families/bert/bert_body.hpp"

#include <fmt/format.h>

namespace mylos::families {
namespace {

constexpr std::uint32_t dropout_site = 0;

std::string embeddings_name(const BertShape& shape, std::string_view part) {
  return fmt::format("{}.embeddings.{}", shape.prefix, part);
}

}  // namespace

template <class T>
void BertEmbeddings<T>::add_rows(ParameterTable::Builder& builder, const BertShape& shape) {
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  builder.unit("embeddings");
  builder.tensor(embeddings_name(shape, "word_embeddings.weight"), {shape.vocabulary, shape.hidden}, normal);
  builder.tensor(embeddings_name(shape, "position_embeddings.weight"), {shape.positions, shape.hidden}, normal);
  builder.tensor(embeddings_name(shape, "token_type_embeddings.weight"), {shape.token_types, shape.hidden}, normal);
  add_layer_norm_rows(builder, embeddings_name(shape, "LayerNorm"), shape.hidden);
}

template <class T>
BertEmbeddings<T>::BertEmbeddings(const ParameterTable& table, const BertShape& shape)
    : shape_(shape),
      words_(table.find(embeddings_name(shape, "word_embeddings.weight"))),
      positions_(table.find(embeddings_name(shape, "position_embeddings.weight"))),
      segments_(table.find(embeddings_name(shape, "token_type_embeddings.weight"))),
      norm_(find_layer_norm(table, embeddings_name(shape, "LayerNorm"))) {}

template <class T>
typename BertEmbeddings<T>::Activations BertEmbeddings<T>::take_activations(Arena& arena, const BertShape& shape,
                                                                            std::size_t rows) {
  return {take_layer_norm_saved<T>(arena, rows, shape.hidden), arena.matrix<T>(rows, shape.hidden)};
}

template <class T>
void BertEmbeddings<T>::forward(const nn::Pass& pass, const Batch& batch, float dropout,
                                const Activations& saved) const {
  namespace names = nn::names;
  const auto& parameters = pass.parameters;
  const auto add_table = [&](const ConstVector<std::int32_t>& indices, std::size_t distinct, std::size_t table,
                             bool accumulate) {
    embedding_lookup<T>(pass.space, indices, parameters.matrix<T>(table), accumulate, saved.norm.input, distinct);
  };
  add_table(batch.integers(names::tokens), batch.distinct(names::tokens), words_, false);
  add_table(batch.positions(), batch.shape().longest, positions_, true);
  add_table(batch.integers(names::segments), batch.distinct(names::segments), segments_, true);
  layer_norm_dropout<T>(pass.space, {pass.seed, pass.step, dropout_site, dropout}, dropout_rows(batch),
                        layer_norm_parameters<T>(parameters, norm_, shape_.layer_norm_epsilon), saved.norm,
                        saved.output);
}

template <class T>
void BertEmbeddings<T>::backward(const nn::Pass& pass, const Batch& batch, float dropout, const Activations& saved,
                                 const Matrix<T>& doutput, const Vector<float>& column_sums) const {
  namespace names = nn::names;
  const auto& parameters = pass.parameters;
  layer_norm_dropout_backward<T>(pass.space, {pass.seed, pass.step, dropout_site, dropout}, dropout_rows(batch),
                                 doutput, layer_norm_parameters<T>(parameters, norm_, shape_.layer_norm_epsilon),
                                 saved.norm, doutput, parameters.gradient(norm_.weight),
                                 parameters.gradient(norm_.bias), column_sums);
  const auto add = [&](const IndexGroups& groups, std::size_t table, std::int32_t padding) {
    if (!parameters.trains(table)) return;
    embedding_gradient<T>(pass.space, groups, doutput, parameters.gradient_matrix(table), padding);
  };
  add(batch.groups(names::tokens), words_, shape_.padding_token);
  add(batch.position_groups(), positions_, no_padding);
  add(batch.groups(names::segments), segments_, no_padding);
}

template class BertEmbeddings<float>;
template class BertEmbeddings<bfloat16>;
template class BertEmbeddings<half>;

}  // namespace mylos::families
