#include "app/report/report.hpp"

#include "app/batch/batch_output.hpp"
#include "app/bench/step_breakdown.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/replaceable_file.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

/// mylos report: reads the files of runs and writes a page.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;

bool is_report(const fs::path& file) { return beginning_of(file).find(report_mark) != std::string::npos; }

std::vector<BreakdownRow> read_kernels(const fs::path& file) {
  if (file.empty()) return {};
  const std::string name =
      fmt::format("--kernels {}, expected from mylos bench step --breakdown --json", file.string());
  return kernel_rows(read_json(file), name);
}

std::optional<BatchTable> read_batches(const fs::path& file) {
  if (file.empty()) return std::nullopt;
  return read_batch_table(read_json(file),
                          fmt::format("--batches {}, expected from mylos bench batch --json", file.string()));
}

}  // namespace

int run_report(const Arguments& arguments) {
  const fs::path output = arguments.run.engine.output.empty() ? "report.html" : arguments.run.engine.output;
  if (arguments.positional.empty() && arguments.report->batches.empty()) {
    throw UsageError("report needs a run's directory, or --batches FILE; see mylos report --help");
  }
  if (arguments.report->between && arguments.positional.size() > 1) {
    throw UsageError("--between compares evaluations of one run; name one run, or leave it out to compare the runs");
  }
  check_replaceable({"--output", output, "a report", is_report}, arguments.overwrite);
  const ReportSettings settings{.kernels = read_kernels(arguments.report->kernels),
                                .between = arguments.report->between,
                                .batches = read_batches(arguments.report->batches)};
  const std::string html = report_html(read_reported_runs(arguments.positional), settings);
  write_text(output, html);
  log_line(fmt::format("{}: {}", output.string(), bytes_text(html.size())));
  return 0;
}

}  // namespace mylos::app
