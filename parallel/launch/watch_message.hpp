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

/// A message between ranks when one of them waits too long (wait_inquiry.hpp) or ends with an error
/// (error_announcement.hpp).
struct WatchMessage {
  enum class Kind : std::uint8_t {
    error,         ///< `root` ends because of an error
    alarm,         ///< a rank has waited too long; the receiver passes this on to its parent
    lead,          ///< the same, but the receiver holds an inquiry itself
    taken,         ///< the receiver's alarm has arrived
    question,      ///< asks what the receiver and the ranks below it are doing
    own_question,  ///< asks what the receiver alone is doing
    report,        ///< answers to these questions
    excuse,        ///< the wait goes on, because ranks worked with files for `seconds` of it
    verdict,       ///< the state of all ranks; the receiver ends the program
  };

  Kind kind = Kind::error;
  std::size_t root = 0;      ///< the rank that holds the inquiry
  std::uint64_t number = 0;  ///< number of the inquiry at its root
  double seconds = 0.0;      ///< excuse: see above; question: how long the root waits for answers
  std::vector<RankAnswer> answers = {};
};

std::vector<std::byte> bytes_of(const WatchMessage& message);
WatchMessage watch_message_in(std::span<const std::byte> bytes);

/// Maximum length of an operation's name in a message; longer names are cut.
inline constexpr std::size_t sent_operation = 159;

}  // namespace mylos::parallel
