#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What `mylos doctor` finds, and how equal answers of ranks become one line.
namespace mylos::app {

/// A warning lets runs start; with an error they would fail, or not do what was meant.
enum class Level { ok, warning, error };
std::string to_string(Level level);

/// What a Finding's value counts.
enum class Quantity { bytes, bytes_per_second, seconds };
/// "1.5 GiB", "12.3 MB/s", "4.5 us".
std::string value_text(double value, Quantity quantity);

struct Finding {
  Level level = Level::ok;
  std::string name;                  ///< what was looked at, one of the names that the .cpp orders
  std::string text;                  ///< what was found; {} stands for the value
  std::string advice = {};           ///< what to do
  std::optional<double> value = {};  ///< ranks whose values differ still share a line, which tells their range
  Quantity quantity = Quantity::bytes;
};
using Findings = std::vector<Finding>;

nlohmann::json to_json(const Findings& findings);
/// Errors: nlohmann::json::exception where it is none of to_json.
Findings findings_of(const nlohmann::json& value);

/// A finding and the ranks that have it, in order; none where it is of the launch as a whole.
struct FoldedFinding {
  Finding finding;  ///< its text is whole
  std::vector<std::size_t> ranks;
};

/// Equal findings of ranks become one. `of_launch`: those that are not of one rank.
std::vector<FoldedFinding> fold(const Findings& of_launch, std::span<const Findings> of_ranks);

/// "0-3,8"
std::string ranks_text(std::span<const std::size_t> ranks);

/// A line for each finding and one that counts them; and the same for programs.
std::string report_text(std::span<const FoldedFinding> findings, std::size_t ranks);
nlohmann::ordered_json report_json(std::span<const FoldedFinding> findings, std::size_t ranks, std::size_t nodes);

/// 1 where there is an error, else 0.
int doctor_exit_code(std::span<const FoldedFinding> findings);

}  // namespace mylos::app
