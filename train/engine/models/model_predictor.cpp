#include "train/engine/models/model_predictor.hpp"

#include "core/base/error.hpp"
#include "core/base/stopwatch.hpp"
#include "parallel/communicator/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>

namespace mylos::train {
namespace {

using HostView = Kokkos::View<float*, Kokkos::LayoutRight, HostSpace, Kokkos::MemoryUnmanaged>;

constexpr const char* exchanged = "predictions";
constexpr std::size_t outputs_count = 0, losses_count = 1, signal_number = 2, not_finite = 3, counts_of_rank = 4;

}  // namespace

ModelPredictor::ModelPredictor(parallel::Communicator& ranks, const ExecutionSpace& space, const nn::Model& model,
                               const ParameterStore& store, UnitHooks& hooks, const Gemm& gemm, Arena& arena,
                               const BatchShape& largest)
    : ranks_(ranks),
      model_(model),
      pass_{space, gemm, store, hooks, arena},
      batch_(largest, ParameterStore::Purpose::inference),
      losses_("mylos::ModelPredictor::losses", largest.samples),
      counts_(counts_of_rank * ranks.size()) {}

PredictionEnd ModelPredictor::predict(Evaluation& evaluation, const StopQuestion& stop) {
  const Stopwatch watch;
  const std::size_t batches = evaluation.batches(), ranks = ranks_.size();
  PredictionEnd end;
  std::exception_ptr failure;  // thrown when no rank waits for this one
  evaluation.read_ahead(std::min(ranks_.rank(), batches - 1), ranks);
  for (std::size_t first = 0; first < batches && end.complete(); first += ranks) {
    // A rank without a batch repeats the last one, because its pass may take part in collectives.
    const Counts own = forward(evaluation, std::min(first + ranks_.rank(), batches - 1));
    end = exchange(own, stop ? stop() : 0);
    if (ranks_.rank() != 0 || failure || !end.complete()) continue;
    try {
      for (std::size_t rank = 0; rank < std::min(ranks, batches - first); ++rank) {
        evaluation.take(first + rank, outputs_of(rank), losses_of(rank));
      }
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }
  parallel::on_first_rank(ranks_, [&] {
    if (failure) std::rethrow_exception(failure);
  });
  seconds_ = watch.seconds();
  return end;
}

void ModelPredictor::predict(Evaluation& evaluation) {
  ensure(predict(evaluation, {}).finite,
         "the model's outputs are not finite numbers: its weights are damaged, or its training diverged");
}

Metrics ModelPredictor::score(Evaluation& evaluation) {
  return parallel::on_first_rank(ranks_, [&] { return evaluation.score(); });
}

Metrics ModelPredictor::evaluate(Evaluation& evaluation) {
  predict(evaluation);
  return score(evaluation);
}

ModelPredictor::Counts ModelPredictor::forward(const Evaluation& evaluation, std::size_t batch) {
  evaluation.assemble(batch, batch_);
  const std::size_t samples = batch_.shape().samples;
  outputs_ = model_.predict(pass_, batch_, slice(losses_, 0, samples));
  return {outputs_.size(), samples};
}

/// Gathers all outputs and losses on the first rank, through host memory. Returns, on all ranks, the largest signal of
/// a rank and whether all outputs are finite.
PredictionEnd ModelPredictor::exchange(const Counts& own, int signal) {
  const std::size_t rank = ranks_.rank(), taken = own.outputs + own.losses;
  if (gathered_.size() < taken) gathered_ = HostVector<float>("mylos::ModelPredictor::gathered", taken);
  Kokkos::deep_copy(pass_.space, HostView(gathered_.data(), own.outputs), Vector<float>(outputs_.data(), own.outputs));
  Kokkos::deep_copy(pass_.space, HostView(gathered_.data() + own.outputs, own.losses), slice(losses_, 0, own.losses));
  pass_.space.fence("mylos::ModelPredictor::exchange");  // waits for the asynchronous copies to the host
  const auto is_finite = [](float output) { return std::isfinite(output); };
  std::int64_t* const own_counts = counts_.data() + counts_of_rank * rank;
  own_counts[outputs_count] = static_cast<std::int64_t>(own.outputs);
  own_counts[losses_count] = static_cast<std::int64_t>(own.losses);
  own_counts[signal_number] = signal;
  own_counts[not_finite] = std::all_of(gathered_.data(), gathered_.data() + own.outputs, is_finite) ? 0 : 1;
  const auto host = parallel::MemoryKind::host;
  ranks_
      .all_gather(pass_.space, {own_counts, counts_of_rank, parallel::ElementType::int64, host},
                  {counts_.data(), counts_.size(), parallel::ElementType::int64, host}, exchanged)
      .wait(pass_.space);
  slot_ = 0;
  PredictionEnd end;
  for (std::size_t i = 0; i < counts_.size(); i += counts_of_rank) {
    slot_ = std::max(slot_, static_cast<std::size_t>(counts_[i + outputs_count] + counts_[i + losses_count]));
    end.signal = std::max(end.signal, static_cast<int>(counts_[i + signal_number]));
    end.finite = end.finite && counts_[i + not_finite] == 0;
  }
  gather_outputs(taken);
  return end;
}

/// Sends this rank's `taken` values to its slot on the first rank.
void ModelPredictor::gather_outputs(std::size_t taken) {
  const std::size_t all = ranks_.rank() == 0 ? slot_ * ranks_.size() : slot_;
  if (gathered_.size() < all) {
    const HostVector<float> smaller = gathered_;
    gathered_ = HostVector<float>("mylos::ModelPredictor::gathered", all);
    std::copy(smaller.data(), smaller.data() + taken, gathered_.data());
  }
  const auto host = parallel::MemoryKind::host;
  const std::size_t slots = ranks_.rank() == 0 ? ranks_.size() : 0;
  // The first rank's own values are already in the first slot.
  ranks_
      .gather(pass_.space, {gathered_.data(), slot_, parallel::ElementType::float32, host},
              {gathered_.data(), slot_ * slots, parallel::ElementType::float32, host}, 0, exchanged)
      .wait(pass_.space);
}

std::span<const float> ModelPredictor::outputs_of(std::size_t rank) const {
  return {gathered_.data() + slot_ * rank, static_cast<std::size_t>(counts_[counts_of_rank * rank + outputs_count])};
}

std::span<const float> ModelPredictor::losses_of(std::size_t rank) const {
  const std::span<const float> outputs = outputs_of(rank);
  return {outputs.data() + outputs.size(), static_cast<std::size_t>(counts_[counts_of_rank * rank + losses_count])};
}

}  // namespace mylos::train
