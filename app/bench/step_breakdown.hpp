#pragma once

#include "app/bench/step_profile.hpp"
#include "core/kernels/gemm_product.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

/// A training step as a table of what it does: time, work and share of the roofline, kernel by kernel.
namespace mylos::app {

/// One step that was listened to.
struct ProfiledStep {
  Profile profile;
  double seconds = 0.0;  ///< by the clock on the wall
};

/// What the roofline is made of, measured in the same run.
struct Ceilings {
  double flops = 0.0;      ///< a second, of the fastest matrix product
  double bandwidth = 0.0;  ///< bytes a second, of a triad
};

/// Medians over the steps.
struct BreakdownRow {
  SpanKind kind = SpanKind::kernel;
  std::string name;
  double calls = 0.0;    ///< a step
  double seconds = 0.0;  ///< a step
  double share = 0.0;    ///< of the step's time
  // Nothing where a kernel does not report its work, and for the host's work:
  std::optional<Work> work = {};                 ///< a step
  std::optional<double> flops = {}, bytes = {};  ///< a second
  std::optional<double> roofline = {};           ///< the least time that the two ceilings allow over the time taken
};

struct Breakdown {
  std::vector<BreakdownRow> kernels;  ///< kernels, products and copies; the longest first
  std::vector<BreakdownRow> host;     ///< sections of host code
  double seconds = 0.0;               ///< a step
  double in_kernels = 0.0;            ///< share of the step's time in `kernels`
  double accounted = 0.0;             ///< and in `kernels` and `host`
};

/// Products have the names that they have in the model's list.
Breakdown make_breakdown(std::span<const GemmProduct> products, const std::vector<ProfiledStep>& steps,
                         const Ceilings& ceilings);

/// The table as text, a line a row.
std::string to_text(const Breakdown& breakdown, const Ceilings& ceilings);

}  // namespace mylos::app
