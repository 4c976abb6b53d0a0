#pragma once

#include "parallel/launch/wait_report.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mylos::parallel {

struct RankAnswer {
  std::size_t rank = 0;
  RankState state;  ///< without the host, which all ranks know
};

/// What ranks send each other while one of them waits too long (wait_inquiry.hpp) or ends with an error
/// (error_announcement.hpp).
struct WatchMessage {
  enum class Kind : std::uint8_t {
    error,         ///< `root` ends because of an error
    alarm,         ///< a rank has waited too long; the receiver tells its parent
    lead,          ///< the same; the receiver holds an inquiry itself
    taken,         ///< the receiver of an alarm is there
    question,      ///< what the receiver and those below it do
    own_question,  ///< what the receiver alone does
    report,        ///< answers to these
    excuse,        ///< the wait goes on: ranks worked with files for `seconds` of it
    verdict,       ///< what all ranks do, for the receiver to end the program
  };

  Kind kind = Kind::error;
  std::size_t root = 0;      ///< the rank that holds the inquiry
  std::uint64_t number = 0;  ///< of its inquiries
  double seconds = 0.0;      ///< of an excuse; of a question how long its root waits for answers
  std::vector<RankAnswer> answers = {};
};

std::vector<std::byte> bytes_of(const WatchMessage& message);
WatchMessage watch_message_in(std::span<const std::byte> bytes);

/// The part of an operation's name that travels.
inline constexpr std::size_t sent_operation = 159;

}  // namespace mylos::parallel
