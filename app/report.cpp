#include "app/report.hpp"

#include "app/commands.hpp"
#include "app/standard_output.hpp"
#include "app/usage_error.hpp"
#include "core/error.hpp"
#include "data/files.hpp"
#include "data/json.hpp"
#include "train/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

/// mylos report: reads runs' files and writes a page.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;

/// A file that is no report of ours is kept: a typing error must not cost anybody a file.
void check_output(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return;
  ensure(fs::is_regular_file(file, none), fmt::format("--output {}: is no file; name one", file.string()));
  constexpr std::size_t looked_at = 1024;
  std::string begin(looked_at, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  ensure(begin.find(report_mark) != std::string::npos,
         fmt::format("--output {}: is there and is no report; remove it or choose another name", file.string()));
}

bool are_kernels(const nlohmann::json& rows) {
  return rows.is_array() && std::ranges::all_of(rows, [](const nlohmann::json& row) {
           return row.is_object() && row.contains("name") && row["name"].is_string();
         });
}

nlohmann::json read_kernels(const fs::path& file) {
  if (file.empty()) return nullptr;
  nlohmann::json kernels = data::read_json(file);
  const auto breakdown = kernels.is_object() ? kernels.find("breakdown") : kernels.end();
  ensure(kernels.is_object() && breakdown != kernels.end() && breakdown->is_object() &&
             are_kernels(breakdown->value("kernels", nlohmann::json())),
         fmt::format("--kernels {}: is not what mylos bench step --breakdown --json prints", file.string()));
  return kernels;
}

}  // namespace

int run_report(const Arguments& arguments) {
  const fs::path output = arguments.run.engine.output.empty() ? "report.html" : arguments.run.engine.output;
  if (arguments.report.between && arguments.positional.size() > 1) {
    throw UsageError("--between: compares evaluations of one run; name one, or leave it out to compare the runs");
  }
  check_output(output);
  const ReportSettings settings{.kernels = read_kernels(arguments.report.kernels), .between = arguments.report.between};
  const std::string html = report_html(read_reported_runs(arguments.positional), settings);
  data::write_text(output, html);
  log_line(fmt::format("{}: {}", output.string(), train::bytes_text(html.size())));
  return 0;
}

}  // namespace mylos::app
