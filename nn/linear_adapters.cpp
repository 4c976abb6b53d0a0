#include "nn/linear_adapters.hpp"

#include "core/base/error.hpp"
#include "nn/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::nn {
namespace {

using Purpose = ParameterStore::Purpose;

/// Dropout sites of adapters begin after those of all layers.
constexpr std::uint32_t first_site = 0x8000;

template <class T>
BlockValues<T> values_of(const ParameterStore& parameters, const LinearAdapters& adapters) {
  BlockValues<T> values;
  for (std::size_t i = 0; i < adapters.blocks.count; ++i) values[i] = parameters.values<T>(adapters.up[i]);
  return values;
}

}  // namespace

LinearAdapters find_adapters(const ParameterTable& table, std::size_t weight, std::size_t stacked) {
  LinearAdapters found;
  if (!table.is_adapted()) return found;
  require(stacked <= most_low_rank_blocks, fmt::format("adapters of {} layers that are read as one", stacked));
  for (std::size_t i = weight; i < weight + stacked; ++i) {
    const ParameterTensor& tensor = table.tensor(i);
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    found.in = tensor.shape[1];
    if (const auto down = table.look_up(module + adapter_a)) {
      const ParameterTensor& a = table.tensor(*down);
      if (found.rank == 0) found.down = *down;
      LowRankBlocks& blocks = found.blocks;
      found.up[blocks.count] = table.find(module + adapter_b);
      blocks.block[blocks.count++] = {found.out, tensor.shape[0], found.rank, a.shape[0], a.adapter->scale};
      found.rank += a.shape[0];
      found.dropout = a.adapter->dropout;
    }
    found.out += tensor.shape[0];
  }
  found.site = first_site + static_cast<std::uint32_t>(found.down);
  return found;
}

std::vector<LinearAdapters> all_adapters(const ParameterTable& table) {
  std::vector<LinearAdapters> all;
  const auto tensors = table.tensors();
  for (std::size_t i = 0, stacked = 1; table.is_adapted() && i < tensors.size(); i += stacked, stacked = 1) {
    if (!tensors[i].is_linear) continue;
    const auto is_stacked = [&](std::size_t j) { return tensors[j].is_linear && tensors[j].stack == tensors[i].stack; };
    while (tensors[i].stack != 0 && i + stacked < tensors.size() && is_stacked(i + stacked)) ++stacked;
    if (const LinearAdapters found = find_adapters(table, i, stacked); found.rank > 0) all.push_back(found);
  }
  return all;
}

AdapterArrays::AdapterArrays(Arena& arena, std::span<const LinearAdapters> all, Precision precision, std::size_t rows,
                             Purpose purpose)
    : count_(rows) {
  const std::size_t bytes = bytes_of(precision);
  std::size_t widest = 0, placed = 0, dropped = 0;
  for (const LinearAdapters& adapters : all) {
    widest = std::max(widest, adapters.rank);
    placed = std::max(placed, adapters.out * adapters.rank);
    if (adapters.dropout > 0.0f) dropped = std::max(dropped, adapters.in);
  }
  const bool trains = purpose == Purpose::training;
  const Vector<std::byte> shared = arena.vector<std::byte>(rows * widest * bytes);
  for (const LinearAdapters& adapters : all) {
    kept_[adapters.down] = trains ? arena.vector<std::byte>(rows * adapters.rank * bytes) : shared;
  }
  up_ = arena.vector<std::byte>(placed * bytes);
  if (!trains) return;
  row_gradients_ = shared;
  up_gradient_ = arena.vector<float>(placed);
  dropped_ = arena.vector<std::byte>(rows * dropped * bytes);
}

/// Returns U.
template <class T>
ConstMatrix<T> AdapterArrays::placed(const Pass& pass, const LinearAdapters& adapters) {
  const Matrix<T> up = part<T>(up_, adapters.out, adapters.rank);
  place_low_rank<T>(pass.space, adapters.blocks, values_of<T>(pass.parameters, adapters), up);
  return up;
}

/// Returns x after dropout.
template <class T>
ConstMatrix<T> AdapterArrays::dropped(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& x) {
  if (dropped_.extent(0) == 0) return x;  // without dropout, or in prediction
  const Matrix<T> result = part<T>(dropped_, count_, adapters.in);
  dropout<T>(pass.space, {pass.seed, pass.step, adapters.site, adapters.dropout}, rows_, x, result);
  return result;
}

template <class T>
void AdapterArrays::forward(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& x, float beta,
                            const Matrix<T>& y) {
  const Matrix<T> rows = kept_rows<T>(adapters);
  pass.gemm.operator()<T, T>(pass.space, Transpose::no, dropped(pass, adapters, x), Transpose::yes,
                             pass.parameters.stacked_matrix<T>(adapters.down, adapters.blocks.count), 0.0f, rows);
  pass.gemm.operator()<T, T>(pass.space, Transpose::no, rows, Transpose::yes, placed<T>(pass, adapters), beta, y);
}

/// Returns dy U (T, R), the gradient of x A^T. Computed once a layer: the first caller also adds the gradients of B.
template <class T>
Matrix<T> AdapterArrays::row_gradients(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& dy) {
  const Matrix<T> gradients = part<T>(row_gradients_, count_, adapters.rank);
  if (current_ == adapters.down) return gradients;
  current_ = adapters.down;
  pass.gemm.operator()<T, T>(pass.space, Transpose::no, dy, Transpose::no, placed<T>(pass, adapters), 0.0f, gradients);
  const Matrix<float> du = as_matrix(up_gradient_, adapters.out, adapters.rank);
  pass.gemm.operator()<T, float>(pass.space, Transpose::yes, dy, Transpose::no, kept_rows<T>(adapters), 0.0f, du);
  BlockGradients db;
  for (std::size_t i = 0; i < adapters.blocks.count; ++i) db[i] = pass.parameters.gradient(adapters.up[i]);
  add_low_rank_gradients(pass.space, adapters.blocks, du, db);
  return gradients;
}

template <class T>
void AdapterArrays::gradients(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& x,
                              const ConstMatrix<T>& dy) {
  const std::size_t count = adapters.blocks.count;
  const Matrix<T> rows = row_gradients(pass, adapters, dy);
  const float beta = pass.parameters.begins_gradient(adapters.down, count) ? 0.0f : 1.0f;
  pass.gemm.operator()<T, float>(pass.space, Transpose::yes, rows, Transpose::no, dropped(pass, adapters, x), beta,
                                 pass.parameters.stacked_gradient_matrix(adapters.down, count));
}

template <class T>
void AdapterArrays::input_gradient(const Pass& pass, const LinearAdapters& adapters, const ConstMatrix<T>& dy,
                                   float beta, const Matrix<T>& dx) {
  const Matrix<T> rows = row_gradients(pass, adapters, dy);
  const ConstMatrix<T> a = pass.parameters.stacked_matrix<T>(adapters.down, adapters.blocks.count);
  if (dropped_.extent(0) == 0) {
    return pass.gemm.operator()<T, T>(pass.space, Transpose::no, rows, Transpose::no, a, beta, dx);
  }
  const Matrix<T> before = part<T>(dropped_, count_, adapters.in);
  pass.gemm.operator()<T, T>(pass.space, Transpose::no, rows, Transpose::no, a, 0.0f, before);
  dropout<T>(pass.space, {pass.seed, pass.step, adapters.site, adapters.dropout}, rows_, before, dx, beta != 0.0f);
}

std::vector<GemmProduct> adapter_products(std::span<const LinearAdapters> all, std::size_t rows, Precision precision,
                                          Purpose purpose) {
  std::vector<GemmProduct> products;
  for (const LinearAdapters& each : all) {
    const std::size_t rank = each.rank;
    const auto add = [&](GemmProduct product, const char* name) {
      product.input = precision;
      product.name = fmt::format("adapters-{}x{}x{}/{}", each.in, rank, each.out, name);
      const auto same = std::ranges::find(products, product.name, &GemmProduct::name);
      same == products.end() ? products.push_back(product) : void(++same->count);
    };
    const Precision wide = Precision::float32;
    add({.transpose_b = Transpose::yes, .m = rows, .n = rank, .k = each.in, .output = precision}, "down");
    add({.transpose_b = Transpose::yes, .m = rows, .n = each.out, .k = rank, .output = precision}, "up");
    if (purpose == Purpose::inference) continue;
    add({.m = rows, .n = rank, .k = each.out, .output = precision}, "row-gradient");
    add({.transpose_a = Transpose::yes, .m = each.out, .n = rank, .k = rows, .output = wide}, "up-gradient");
    add({.transpose_a = Transpose::yes, .m = rank, .n = each.in, .k = rows, .output = wide}, "down-gradient");
    add({.m = rows, .n = each.in, .k = rank, .output = precision}, "input-gradient");
  }
  return products;
}

#define MYLOS_INSTANTIATE(T)                                                                                       \
  template void AdapterArrays::forward<T>(const Pass&, const LinearAdapters&, const ConstMatrix<T>&, float,        \
                                          const Matrix<T>&);                                                       \
  template void AdapterArrays::gradients<T>(const Pass&, const LinearAdapters&, const ConstMatrix<T>&,             \
                                            const ConstMatrix<T>&);                                                \
  template void AdapterArrays::input_gradient<T>(const Pass&, const LinearAdapters&, const ConstMatrix<T>&, float, \
                                                 const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::nn
