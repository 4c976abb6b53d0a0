#include "train/engine/loop/divergence.hpp"

#include "core/base/setting_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace mylos::train {
namespace {

/// Each rank checks the master weights that it owns. Collective.
bool weights_are_finite(const RunSetup& run) {
  bool finite = true;
  std::vector<float> values;
  for (const ParameterSlice& part : run.strategy->slices()) {
    if (part.master.extent(0) == 0) continue;  // never updated
    // The padding of a unit's last slices belongs to no tensor and may hold any value.
    const std::size_t size = run.store.table().units()[part.unit].size;
    const std::size_t owned = std::min(part.end, size) - std::min(part.begin, size);
    for_each_piece(owned, [&](std::size_t first, std::size_t count) {
      values.resize(count);
      const Kokkos::View<float*, HostSpace, Kokkos::MemoryUnmanaged> target(values.data(), count);
      Kokkos::deep_copy(target, slice(part.master, first, first + count));
      finite = finite && std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
    });
  }
  return parallel::maximum(run.ranks.world, finite ? 0 : 1) == 0;
}

/// Exports the weights before the divergence. Returns a message about it; empty if no weights can be kept.
std::string keep_weights(const RunSetup& run, const Divergence& divergence) {
  if (run.config.output.empty() || !divergence.keeps_weights) return {};
  const std::optional<LastUpdate>& spoilt = divergence.spoilt;
  if (spoilt) {
    if (const std::string_view update = run.optimizer->revert(run.space, spoilt->settings); !update.empty()) {
      return fmt::format("last/ is not written, because an update {} cannot be undone; ", update);
    }
    run.strategy->sync_parameters(run.space, ChangedUnits::trained);
  }
  if (!weights_are_finite(run)) return {};
  run.export_model("last");
  return fmt::format("last/ contains the weights from before step {}{}; ",
                     1 + (spoilt ? spoilt->step : divergence.step), spoilt ? ", up to the rounding of its update" : "");
}

}  // namespace

void stop_diverged(const RunSetup& run, const Divergence& divergence) {
  const std::string kept = keep_weights(run, divergence);
  const bool is_half = run.config.precision == Precision::float16;
  const bool is_first = divergence.step == 0;
  const std::string advice =
      is_first ? "no update was made yet: the weights are damaged, or too large for " +
                     setting("precision", to_string(run.config.precision))
               : fmt::format("use a smaller {} or a longer {}", setting("learning-rate"), setting("warmup"));
  const std::string more_range = is_half ? fmt::format("{} {} bfloat16 or float, for half ends at 65504",
                                                       is_first ? "; use" : ", or", setting("precision"))
                                         : "";
  throw parallel::SharedError(
      fmt::format("{}: the run stops; {}{}{}{}", divergence.what, kept, divergence.checkpoint, advice, more_range));
}

}  // namespace mylos::train
