#include "app/doctor/doctor_ranks.hpp"

#include "core/base/process.hpp"

#include <algorithm>
#include <cstring>

namespace mylos::app {
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

}  // namespace mylos::app
