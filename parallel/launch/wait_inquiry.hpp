#pragma once

#include "parallel/launch/wait_report.hpp"
#include "parallel/launch/watch_message.hpp"
#include "parallel/launch/watch_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace mylos::parallel {

/// One rank's part in finding out why a rank waits too long, without the library that carries the messages.
///
/// A rank that has waited for the limit raises an alarm, which goes up the tree to the first rank. That one holds an
/// inquiry: it asks its children, which ask theirs, and reports come back the same way. A rank whose parent does not
/// take the alarm turns to the heads (watch_heads), in order, and at last holds the inquiry itself. Ranks of which the
/// tree brings no answer, because one above them does not answer, are asked directly. Then the lowest rank that has
/// waited too long learns what all do, and ends the program; or all learn that time with files excuses the wait. An
/// inquiry takes at most seven messages for each rank.
class WaitInquiry {
 public:
  using Send = std::function<void(std::size_t to, const WatchMessage& message)>;
  /// The time of a call, the limit of a wait, both in seconds, and this rank's state.
  struct Moment {
    double now;
    double limit;
    const RankState& own;
  };

  WaitInquiry(std::size_t size, std::size_t rank, Send send);

  /// Of the kinds from alarm on.
  void receive(std::size_t from, const WatchMessage& message, const Moment& moment);
  /// From time to time, after what has come was received.
  void look(const Moment& moment);

  /// What each rank does, where this one is to end the program because of it.
  const std::optional<std::vector<RankState>>& verdict() const { return verdict_; }
  /// Inquiries that ended with an excuse for this rank.
  std::size_t excuses() const { return excuses_; }

 private:
  using Wait = std::optional<std::pair<std::uint64_t, std::uint64_t>>;  ///< for a group's operation
  struct Alarm {
    double begun;
    std::size_t told = 0;  ///< ranks of helpers_
    bool taken = false;
  };
  /// What this rank finds out for its parent.
  struct Question {
    std::size_t root, asker;
    std::uint64_t number;
    double end;                      ///< when the report goes, with what has come
    std::vector<std::size_t> asked;  ///< children that have not reported
    std::vector<RankAnswer> answers;
    bool reported = false;
  };
  struct Inquiry {
    double begun, patience;
    std::vector<RankState> states;
    std::size_t silent;
    bool asked_all = false;  ///< those that the tree did not bring
  };

  bool is_asked(double now) const { return now < quiet_until_; }
  void be_quiet(const Moment& moment, double patience);
  void note_wait(const RankState& own);
  void raise_alarm(const Moment& moment);
  void go_on_with_alarm(const Moment& moment);
  void answer(std::size_t from, const WatchMessage& question, const Moment& moment);
  void report(Question& question);
  void take(std::size_t from, const WatchMessage& report);
  void take_excuse(const WatchMessage& excuse);
  void take_verdict(const WatchMessage& verdict, const RankState& own);
  void begin_inquiry(const Moment& moment);
  void go_on_with_inquiry(const Moment& moment);
  void end_inquiry(const Moment& moment, std::size_t accuser);

  std::size_t size_, rank_;
  Send send_;
  std::vector<std::size_t> helpers_;  ///< that an alarm is told, each where those before do not take it
  std::optional<Alarm> alarm_;
  double quiet_until_ = -std::numeric_limits<double>::infinity();  ///< an inquiry is under way
  Wait wait_, told_wait_;                                          ///< this rank's, and the one of its last answer
  double excused_ = 0.0;                                           ///< seconds that do not count of the wait
  std::vector<Question> questions_;                                ///< one for each root
  std::optional<Inquiry> inquiry_;
  std::uint64_t inquiries_ = 0;
  std::size_t excuses_ = 0;
  std::optional<std::vector<RankState>> verdict_;
};

}  // namespace mylos::parallel
