#pragma once

#include "app/bench/step_profile.hpp"
#include "core/kernels/products/gemm_product.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

/// Breaks a training step down by kernel: the time, the work and the fraction of the roofline of each kernel.
namespace mylos::app {

/// One profiled step.
struct ProfiledStep {
  Profile profile;
  double seconds = 0.0;  ///< wall-clock time
};

/// The ceilings of the roofline, measured in the same run as the steps.
struct Ceilings {
  double flops = 0.0;      ///< operations per second in the fastest matrix product
  double bandwidth = 0.0;  ///< bytes per second in a triad as in STREAM
};

/// Medians over the profiled steps.
struct BreakdownRow {
  SpanKind kind = SpanKind::kernel;
  std::string name;
  double calls = 0.0;    ///< per step
  double seconds = 0.0;  ///< per step
  double share = 0.0;    ///< fraction of the step's time
  // nullopt for host code and for kernels that do not report their work:
  std::optional<Work> work = {};                 ///< per step
  std::optional<double> flops = {}, bytes = {};  ///< per second
  std::optional<double> roofline = {};  ///< shortest time that both ceilings allow, divided by the measured time
};

struct Breakdown {
  std::vector<BreakdownRow> kernels;  ///< kernels, products and copies; longest first
  std::vector<BreakdownRow> host;     ///< sections of host code; longest first
  double seconds = 0.0;               ///< per step
  double in_kernels = 0.0;            ///< fraction of the step's time in `kernels`
  double accounted = 0.0;             ///< fraction of the step's time in `kernels` and `host`
};

/// Computes the breakdown of `steps`, which must not be empty. `products`, the model's list, gives the names of its
/// matrix products.
Breakdown make_breakdown(std::span<const GemmProduct> products, const std::vector<ProfiledStep>& steps,
                         const Ceilings& ceilings);

/// Returns the table as text, one line per row.
std::string to_text(const Breakdown& breakdown, const Ceilings& ceilings);

/// Key of the breakdown in the output of `mylos bench step`.
inline constexpr const char* breakdown_key = "breakdown";

nlohmann::ordered_json to_json(const Breakdown& breakdown, const Ceilings& ceilings);

/// Reads the kernel rows from the output of `mylos bench step --breakdown --json`; errors call it `name`. Errors:
/// std::runtime_error with the location of a key that is missing or has the wrong type.
std::vector<BreakdownRow> kernel_rows(const nlohmann::json& printed, std::string_view name);

}  // namespace mylos::app
