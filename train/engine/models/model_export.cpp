#include "train/engine/models/model_export.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "train/engine/pieces.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <set>

namespace mylos::train {
namespace {

/// This rank's part of an export, if it is a writer. The first error is kept, and nothing is written after it, so that
/// the rank goes on taking part in collective calls.
class ExportWriter {
 public:
  void start(std::unique_ptr<ModelExport> target) { target_ = std::move(target); }

  void write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) {
    if (failure_) return;
    const parallel::FileWork exporting;
    try {
      target_->write(tensor, first, values);
    } catch (const std::exception&) {
      failure_ = std::current_exception();
    }
  }

  /// Throws the error that was kept.
  void finish() {
    check();
    if (target_ == nullptr) return;
    const parallel::FileWork exporting;
    target_->finish();
  }

  void abandon() { target_.reset(); }

  void commit() {
    check();
    target_->commit();
  }

 private:
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  std::unique_ptr<ModelExport> target_;
  std::exception_ptr failure_;
};

/// The next elements of a writer's tensors.
struct Cursor {
  std::size_t tensor = 0;  ///< in WrittenTensors
  std::size_t first = 0;
};

}  // namespace

void read_state(const ParameterStore& store, std::size_t state_tensor, std::size_t first, std::span<float> values) {
  const Kokkos::View<float*, HostSpace, Kokkos::MemoryUnmanaged> target(values.data(), values.size());
  Kokkos::deep_copy(target, slice(store.state(state_tensor), first, first + values.size()));
}

void gather_tensors(parallel::Communicator& ranks, const ParameterStore& store, parallel::ShardingStrategy& strategy,
                    std::span<const WrittenTensors> writers, const TensorSink& take) {
  const std::span<const ParameterTensor> parameters = store.table().tensors(), states = store.table().state_tensors();
  std::vector<Cursor> cursors(writers.size());
  std::vector<float> values;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    bool ends_tensor = false;
    for (std::size_t i = 0; i < writers.size(); ++i) {
      const WrittenTensors& writer = writers[i];
      Cursor& at = cursors[i];
      if (at.tensor == writer.tensors.size()) continue;
      goes_on = true;
      const std::size_t number = writer.tensors[at.tensor];
      const bool is_state = number >= parameters.size(), writes = ranks.rank() == writer.rank;
      const ParameterTensor& tensor = is_state ? states[number - parameters.size()] : parameters[number];
      values.resize(std::min(piece_elements, tensor.size - at.first));
      if (!is_state) strategy.gather_tensor(number, at.first, values, writer.rank);
      if (is_state && writes) read_state(store, number - parameters.size(), at.first, values);
      if (writes) take(tensor, at.first, values);
      at.first += values.size();
      if (at.first < tensor.size) continue;
      ends_tensor = true;
      at = {.tensor = at.tensor + 1};
    }
    // Ranks that own nothing of a tensor must not run ahead of it for long: --collective-timeout.
    if (ends_tensor) ranks.barrier("a tensor that is exported");
  }
}

std::vector<WrittenTensors> divide_export(std::span<const std::size_t> files, std::span<const std::size_t> writer_of) {
  const std::set<std::size_t> distinct(writer_of.begin(), writer_of.end());
  const std::vector<std::size_t> ranks(distinct.begin(), distinct.end());
  require(!files.empty() && !ranks.empty() && ranks[0] == 0, "export: rank 0 is a writer");
  const std::size_t count = std::min(ranks.size(), files.size());
  std::vector<WrittenTensors> writers;
  for (std::size_t i = 0; i < count; ++i) writers.push_back({.rank = ranks[i * ranks.size() / count], .tensors = {}});
  std::size_t tensor = 0;
  for (std::size_t file = 0; file < files.size(); ++file) {
    std::vector<std::size_t>& own = writers[file % writers.size()].tensors;
    for (const std::size_t end = tensor + files[file]; tensor < end; ++tensor) own.push_back(tensor);
  }
  return writers;
}

void export_model(const ModelExporter& exporter, const TensorSource& source, const std::filesystem::path& directory) {
  const std::unique_ptr<ModelExport> target = exporter.start(directory, {});
  source([&](const ParameterTensor& tensor, std::size_t first, std::span<const float> values) {
    target->write(tensor, first, values);
  });
  target->commit();
}

namespace {

/// See export_model. Errors: SharedError, thrown by all ranks at the same call.
void write_export(parallel::Communicator& ranks, const ModelExporter& exporter, const ParameterStore& store,
                  parallel::ShardingStrategy& strategy, const std::filesystem::path& directory,
                  const std::vector<WrittenTensors>& writers, ExportWriter& mine, const std::function<void()>& check) {
  const std::size_t count = writers.size();
  const std::filesystem::path staged = parallel::on_first_rank(ranks, [&] {
    check();
    std::unique_ptr<ModelExport> first = exporter.start(directory, {.writer = 0, .writers = count});
    const std::filesystem::path path = first->staged();
    mine.start(std::move(first));
    return path;
  });
  if (count > 1) {
    parallel::on_every_rank(ranks, [&] {
      for (std::size_t writer = 1; writer < count; ++writer) {
        if (writers[writer].rank != ranks.rank()) continue;
        const parallel::FileWork starting;
        mine.start(exporter.start(directory, {.writer = writer, .writers = count, .staged = staged}));
      }
    });
  }
  gather_tensors(ranks, store, strategy, writers,
                 [&](const ParameterTensor& tensor, std::size_t first, std::span<const float> values) {
                   mine.write(tensor, first, values);
                 });
  if (count > 1) parallel::on_every_rank(ranks, [&] { mine.finish(); });
  parallel::on_first_rank(ranks, [&] {
    check();
    mine.commit();
  });
}

}  // namespace

void export_model(parallel::Communicator& ranks, const Task& task, const ParameterStore& store,
                  parallel::ShardingStrategy& strategy, const std::filesystem::path& directory,
                  std::span<const std::size_t> writer_of, const std::function<void()>& check) {
  const ModelExporter* const exporter = task.exporter();
  require(exporter != nullptr, "export: the task has no exporter");
  ExportWriter mine;
  try {
    std::vector<WrittenTensors> writers = divide_export(exporter->files(), writer_of);
    const std::span<const ParameterTensor> parameters = store.table().tensors();
    for (WrittenTensors& writer : writers) {
      std::erase_if(writer.tensors, [&](std::size_t tensor) {
        return tensor < parameters.size() && !exporter->exports(parameters[tensor]);
      });
    }
    write_export(ranks, *exporter, store, strategy, directory, writers, mine, check);
  } catch (const parallel::SharedError&) {
    // The first rank removes the directory, in which nobody else may remove files at the same time.
    if (ranks.rank() != 0) mine.abandon();
    ranks.barrier("an export that failed");
    throw;
  }
}

}  // namespace mylos::train
