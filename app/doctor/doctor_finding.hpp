#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

/// Findings of `mylos doctor`, and how equal findings of several ranks become one line.
namespace mylos::app {

/// With warnings, runs still start; with errors, they would fail or do something other than intended.
enum class Level { ok, warning, error };

/// The unit of a Finding's value.
enum class Quantity { bytes, bytes_per_second, seconds };
/// Returns "1.5 GiB", "12.3 MB/s", "4.5 us".
std::string value_text(double value, Quantity quantity);

struct Finding {
  Level level = Level::ok;
  std::string name;                 ///< the subject; one of the names ordered in the .cpp file
  std::string text;                 ///< the result; {} stands for the values
  std::string advice = {};          ///< how to fix it
  std::vector<double> values = {};  ///< one or none; ranks that differ only in it share a line, which shows the range
  Quantity quantity = Quantity::bytes;
};
using Findings = std::vector<Finding>;

/// Moves the findings of `more` to the end of `to`.
void append(Findings& to, Findings more);

/// A finding and the ranks that have it, in order; no ranks if it concerns the whole launch.
struct FoldedFinding {
  Finding finding;  ///< its text includes the values
  std::vector<std::size_t> ranks;
};

/// Merges equal findings of ranks. `of_launch` holds the findings that concern the whole launch.
std::vector<FoldedFinding> fold(const Findings& of_launch, std::span<const Findings> of_ranks);

/// Returns "0-3,8".
std::string ranks_text(std::span<const std::size_t> ranks);

/// One line per finding and a line with the totals, as text and as JSON.
std::string report_text(std::span<const FoldedFinding> findings, std::size_t ranks);
nlohmann::ordered_json report_json(std::span<const FoldedFinding> findings, std::size_t ranks, std::size_t nodes);

/// Returns 1 if there is an error, otherwise 0.
int doctor_exit_code(std::span<const FoldedFinding> findings);

}  // namespace mylos::app
