#include "core/base/options/walltime.hpp"

#include "core/base/files/text_file.hpp"
#include "core/base/process/subprocess.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace mylos {
namespace {

constexpr std::optional<double> no_limit = std::numeric_limits<double>::infinity();

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<double> whole_number(std::string_view text) {
  unsigned long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(value);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

/// Returns the value of the line "name = value" in the output of qstat -f; nullopt if there is no such line.
std::optional<std::string_view> attribute_of(std::string_view text, std::string_view name) {
  for (std::string_view line : split_lines(text)) {
    line = trimmed(line);
    if (!line.starts_with(name)) continue;
    line = trimmed(line.substr(name.size()));
    if (line.starts_with('=')) return trimmed(line.substr(1));
  }
  return std::nullopt;
}

std::optional<double> slurm_remaining(double now, const RunProgram& run) {
  const std::string job = environment("SLURM_JOB_ID");
  if (job.empty()) return std::nullopt;
  if (const auto end = whole_number(environment("SLURM_JOB_END_TIME"))) return *end - now;
  const auto output = run({"squeue", "-h", "-j", job, "-o", "%L"});  // before version 23, Slurm sets no end time
  if (!output) return std::nullopt;
  return trimmed(*output) == "UNLIMITED" ? no_limit : parse_walltime(trimmed(*output));
}

std::optional<double> pbs_remaining(const RunProgram& run) {
  const std::string job = environment("PBS_JOBID");
  if (job.empty()) return std::nullopt;
  const auto output = run({"qstat", "-f", job});
  if (!output) return std::nullopt;
  const auto limit = attribute_of(*output, "Resource_List.walltime");
  if (!limit) return output->find("Job Id") == std::string::npos ? std::nullopt : no_limit;
  const auto granted = parse_walltime(*limit);
  if (!granted) return std::nullopt;
  return *granted - parse_walltime(attribute_of(*output, "resources_used.walltime").value_or("")).value_or(0.0);
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& words) {
  try {
    const ProcessResult result = run_process(words);
    return result.exit_code == 0 ? std::optional(result.output) : std::nullopt;
  } catch (const std::runtime_error&) {  // not installed here
    return std::nullopt;
  }
}

std::optional<double> parse_walltime(std::string_view text) {
  std::optional<double> days;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    days = whole_number(text.substr(0, dash));
    if (!days) return std::nullopt;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0.0;
  int parts = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++parts) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const auto value = whole_number(text.substr(begin, end - begin));
    if (!value || parts == 3) return std::nullopt;
    seconds = 60.0 * seconds + *value;
    begin = end + 1;
  }
  if (!days) return parts < 2 ? std::nullopt : std::optional(seconds);
  // After days, the first part is hours; missing minutes and seconds are zero.
  for (; parts < 3; ++parts) seconds *= 60.0;
  return *days * 86400.0 + seconds;
}

std::optional<double> remaining_walltime(double now, const RunProgram& run) {
  const auto slurm = slurm_remaining(now, run);
  return slurm ? slurm : pbs_remaining(run);
}

std::optional<double> remaining_walltime() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return remaining_walltime(std::chrono::duration<double>(now).count(), output_of);
}

std::optional<double> pbs_start_count(const std::string& job) {
  const auto output = output_of({"qstat", "-f", job});
  return output ? whole_number(attribute_of(*output, "run_count").value_or("")) : std::nullopt;
}

}  // namespace mylos
