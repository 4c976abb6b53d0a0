#include "train/engine/model_export.hpp"

#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "train/engine/pieces.hpp"

#include <exception>
#include <string>
#include <vector>

namespace mylos::train {
namespace {

/// The export on the first rank. After the first error, which is kept, nothing more is written.
class FirstRankExport {
 public:
  explicit FirstRankExport(bool writes) : writes_(writes) {}

  template <class Work>
  void attempt(const Work& work) {
    if (!writes_ || failure_) return;
    const parallel::FileWork exporting;
    try {
      work();
    } catch (const std::exception&) {
      failure_ = std::current_exception();
    }
  }

  /// Throws the error that was kept, if any.
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool writes_;
  std::exception_ptr failure_;
};

/// Reads each tensor with `read` and passes its values to `take`.
template <class Read>
void read_tensors(std::span<const ParameterTensor> tensors, const TensorSink& take, const Read& read) {
  std::vector<float> values;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for_each_piece(tensors[tensor].size, [&](std::size_t first, std::size_t count) {
      values.resize(count);
      read(tensor, first, std::span(values));
      take(tensors[tensor], first, values);
    });
  }
}

}  // namespace

void read_state(const ParameterStore& store, std::size_t state_tensor, std::size_t first, std::span<float> values) {
  const Kokkos::View<float*, HostSpace, Kokkos::MemoryUnmanaged> target(values.data(), values.size());
  Kokkos::deep_copy(target, slice(store.state(state_tensor), first, first + values.size()));
}

void gather_parameters(parallel::Communicator& ranks, const ParameterStore& store, parallel::ShardingStrategy& mode,
                       const TensorSink& take) {
  const bool is_first = ranks.rank() == 0;
  const TensorSink take_first = [&](const ParameterTensor& tensor, std::size_t first, std::span<const float> values) {
    if (is_first) take(tensor, first, values);
    // Keeps ranks that own no part of a tensor at most one tensor ahead of the others (--collective-timeout).
    if (first + values.size() == tensor.size) ranks.barrier("a tensor that is exported");
  };
  read_tensors(store.table().tensors(), take_first,
               [&](std::size_t tensor, std::size_t first, std::span<float> values) {
                 mode.gather_tensor(tensor, first, values);
               });
}

void read_states(const ParameterStore& store, const TensorSink& take) {
  read_tensors(store.table().state_tensors(), take,
               [&](std::size_t tensor, std::size_t first, std::span<float> values) {
                 read_state(store, tensor, first, values);
               });
}

void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ShardingStrategy& mode, const std::filesystem::path& directory) {
  FirstRankExport first(ranks.rank() == 0);
  std::unique_ptr<ModelExport> target;
  first.attempt([&] { target = task.start_export(directory); });
  const TensorSink write = [&](const ParameterTensor& tensor, std::size_t begin, std::span<const float> values) {
    first.attempt([&] { target->write(tensor, begin, values); });
  };
  gather_parameters(ranks, store, mode, write);
  read_states(store, write);
  parallel::on_first_rank(ranks, [&] {
    first.check();
    target->commit();
  });
}

}  // namespace mylos::train
