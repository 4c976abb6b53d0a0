#include "app/doctor/doctor_ranks.hpp"

#include "core/base/files/json.hpp"
#include "core/base/process/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

template <>
struct nlohmann::adl_serializer<mylos::Processors> {
  static void to_json(json& value, const mylos::Processors& processors) {
    const std::string bits = processors.to_string();
    value = bits.substr(std::min(bits.find('1'), bits.size() - 1));
  }
  static void from_json(const json& value, mylos::Processors& processors) {
    processors = mylos::Processors(value.get<std::string>());
  }
};

namespace mylos::app {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, level, name, text, advice, values, quantity)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessorFacts, host, allowed, available, cores, asked_threads, threads_error,
                                   binding, quota)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, findings, processors, device, build)

namespace {

using Steady = std::chrono::steady_clock;

constexpr int clock_questions = 5;
/// Time limit in seconds; short, because every rank has just answered, and several may be gone.
constexpr double clock_patience = 5.0;

std::span<const std::byte> bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of_bytes(const std::vector<std::byte>& bytes) {
  std::string text(bytes.size(), '\0');
  std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Removes infinite values and those that are no number, which JSON does not have.
void keep_numbers(Findings& findings) {
  for (Finding& each : findings) std::erase_if(each.values, [](double value) { return !std::isfinite(value); });
}

template <class T>
T unpack(const std::string& text) {
  return parse_json(text, "the findings of a rank").get<T>();
}

using RankReports = std::map<std::size_t, RankReport>;  // by rank

/// Adds findings about builds that differ.
void compare_builds(const RankReports& reports, Picture& picture) {
  const auto differs = std::ranges::find_if(
      reports, [&](const auto& each) { return each.second.build != reports.begin()->second.build; });
  if (differs == reports.end()) return;
  picture.of_launch.push_back({Level::error, "program",
                               fmt::format("rank {} runs a different build from rank 0", differs->first),
                               "start the same program on every node"});
}

/// Checks the ranks of each node against each other.
void compare_nodes(const RankReports& reports, Picture& picture) {
  std::map<std::size_t, std::vector<std::size_t>> nodes;
  for (const auto& [rank, report] : reports) nodes[picture.first_of_node[rank]].push_back(rank);
  for (const auto& [first, ranks] : nodes) {
    std::vector<ProcessorFacts> processors;
    std::vector<std::string> devices;
    for (const std::size_t rank : ranks) {
      processors.push_back(reports.at(rank).processors);
      devices.push_back(reports.at(rank).device);
    }
    std::vector<Findings> of_processors = processor_findings(processors), of_devices = shared_gpu_findings(devices);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      append(picture.of_ranks[ranks[i]], std::move(of_processors[i]));
      append(picture.of_ranks[ranks[i]], std::move(of_devices[i]));
    }
    append(picture.of_launch, pinning_findings(processors, ranks));
  }
}

}  // namespace

// The other ranks wait longer, because the first rank may have waited for others and run its own checks before it
// sends.
DoctorRanks::DoctorRanks(parallel::RankRuntime& runtime, double limit)
    : runtime_(runtime), limit_(limit), limit_for_first_(2.0 * limit + 5.0) {}

std::vector<std::optional<std::string>> DoctorRanks::collect(const std::string& mine) {
  if (!is_first()) {
    runtime_.send(bytes_of_text(mine), 0, limit_for_first_);
    return {};
  }
  const auto end = Steady::now() + limit_;
  std::vector<std::optional<std::string>> all(runtime_.size());
  all[0] = mine;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (missing_.contains(rank)) continue;
    const Seconds left = std::max<Seconds>(end - Steady::now(), Seconds(0.0));
    const auto bytes = runtime_.receive(rank, left);
    if (bytes) all[rank] = text_of_bytes(*bytes);
    if (!bytes) missing_.insert(rank);
  }
  return all;
}

std::optional<std::string> DoctorRanks::broadcast(const std::string& text) {
  if (!is_first()) {
    const auto bytes = runtime_.receive(0, limit_for_first_);
    return bytes ? std::optional(text_of_bytes(*bytes)) : std::nullopt;
  }
  for (std::size_t rank = 1; rank < runtime_.size(); ++rank) {
    if (!missing_.contains(rank) && !runtime_.send(bytes_of_text(text), rank, limit_)) missing_.insert(rank);
  }
  return text;
}

std::vector<ClockOffset> DoctorRanks::compare_clocks() {
  if (!is_first()) {
    answer_clock();
    return {};
  }
  std::vector<ClockOffset> offsets;
  for (std::size_t rank = 1; rank < runtime_.size(); ++rank) {
    if (missing_.contains(rank)) continue;
    if (const auto offset = ask_clock(rank)) offsets.push_back(*offset);
  }
  return offsets;
}

/// Asks several times and uses the fastest answer.
std::optional<ClockOffset> DoctorRanks::ask_clock(std::size_t rank) {
  const Seconds limit(std::min(limit_.count(), clock_patience));
  ClockOffset best{rank, 0.0, limit.count()};
  for (int question = 0; question < clock_questions; ++question) {
    const double sent = seconds_since_1970();
    const std::byte asks{1};
    const bool was_taken = runtime_.send(std::span(&asks, 1), rank, limit);
    const auto answer = was_taken ? runtime_.receive(rank, limit) : std::nullopt;
    const double received = seconds_since_1970();
    double theirs = 0.0;
    if (!answer || answer->size() != sizeof theirs) {
      missing_.insert(rank);
      return std::nullopt;
    }
    std::memcpy(&theirs, answer->data(), sizeof theirs);
    const double uncertainty = 0.5 * (received - sent);
    if (uncertainty < best.uncertainty) best = {rank, theirs - 0.5 * (sent + received), uncertainty};
  }
  return best;
}

void DoctorRanks::answer_clock() {
  for (int question = 0; question < clock_questions; ++question) {
    if (!runtime_.receive(0, limit_for_first_)) return;
    const double now = seconds_since_1970();
    runtime_.send(std::as_bytes(std::span(&now, 1)), 0, limit_for_first_);
  }
}

std::string pack(RankReport report) {
  keep_numbers(report.findings);
  return dump(report);
}

std::string pack(Findings findings) {
  keep_numbers(findings);
  return dump(findings);
}

std::size_t Picture::nodes() const {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < first_of_node.size(); ++rank) count += first_of_node[rank] == rank ? 1 : 0;
  return count;
}

void Picture::take_reports(std::span<const std::optional<std::string>> reports) {
  RankReports present;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank]) present.emplace(rank, unpack<RankReport>(*reports[rank]));
  }
  for (const auto& [rank, report] : present) append(of_ranks[rank], report.findings);
  compare_builds(present, *this);
  compare_nodes(present, *this);
}

void Picture::take_file_findings(std::span<const std::optional<std::string>> findings) {
  for (std::size_t rank = 0; rank < findings.size(); ++rank) {
    if (!findings[rank]) continue;
    const Findings found = unpack<Findings>(*findings[rank]);
    for (std::size_t other = rank; other < of_ranks.size(); ++other) {
      for (const Finding& each : found) {
        const bool is_of_node = each.name == "output" && first_of_node[other] == rank;
        if (other == rank || is_of_node) of_ranks[other].push_back(each);
      }
    }
  }
}

}  // namespace mylos::app
