#include "core/base/walltime.hpp"

#include "core/base/subprocess.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace mylos {
namespace {

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

/// Parses the walltime after "key = " in `text`.
std::optional<double> walltime_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view line = text.substr(at + key.size());
  line = trimmed(line.substr(0, line.find('\n')));
  if (!line.starts_with('=')) return std::nullopt;
  return parse_walltime(trimmed(line.substr(1)));
}

std::optional<double> slurm_remaining(double now, const RunProgram& run) {
  const std::string job = environment("SLURM_JOB_ID");
  if (job.empty()) return std::nullopt;
  if (const auto end = whole_number(environment("SLURM_JOB_END_TIME"))) return *end - now;
  const auto output = run({"squeue", "-h", "-j", job, "-o", "%L"});  // before version 23, Slurm sets no end time
  return output ? parse_walltime(trimmed(*output)) : std::nullopt;
}

std::optional<double> pbs_remaining(const RunProgram& run) {
  const std::string job = environment("PBS_JOBID");
  if (job.empty()) return std::nullopt;
  const auto output = run({"qstat", "-f", job});
  if (!output) return std::nullopt;
  const auto granted = walltime_of(*output, "Resource_List.walltime");
  if (!granted) return std::nullopt;
  return *granted - walltime_of(*output, "resources_used.walltime").value_or(0.0);
}

}  // namespace

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
  return remaining_walltime(std::chrono::duration<double>(now).count(), [](const std::vector<std::string>& words) {
    try {
      const ProcessResult result = run_process(words);
      return result.exit_code == 0 ? std::optional(result.output) : std::nullopt;
    } catch (const std::runtime_error&) {  // not installed here
      return std::optional<std::string>();
    }
  });
}

}  // namespace mylos
