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

/// One rank's part in finding out why a rank waits too long, independent of the library that carries the messages.
///
/// A rank that has waited for the limit raises an alarm, which is passed up the tree to rank 0. Rank 0 then holds an
/// inquiry: it asks its children, which ask theirs, and the reports return the same way. If its parent does not take
/// the alarm, a rank turns to the heads (watch_heads), in order, and finally holds the inquiry itself. Ranks whose
/// answers do not arrive along the tree, because a rank above them does not answer, are asked directly. Then either the
/// lowest rank that has waited too long receives the state of all ranks and ends the program, or all ranks are informed
/// that time spent on files excuses the wait. An inquiry takes at most seven messages per rank.
class WaitInquiry {
 public:
  using Send = std::function<void(std::size_t to, const WatchMessage& message)>;
  /// The time of a call and the limit of a wait, both in seconds, and this rank's state.
  struct Moment {
    double now;
    double limit;
    const RankState& own;
  };

  WaitInquiry(std::size_t size, std::size_t rank, Send send);

  /// Handles a message of any kind except `error`.
  void receive(std::size_t from, const WatchMessage& message, const Moment& moment);
  /// Called regularly, after all arrived messages have been received.
  void look(const Moment& moment);

  /// The state of each rank, if this rank is to end the program; otherwise nullopt.
  const std::optional<std::vector<RankState>>& verdict() const { return verdict_; }
  /// Number of inquiries that ended with an excuse for this rank.
  std::size_t excuses() const { return excuses_; }

 private:
  using Wait = std::optional<std::pair<std::uint64_t, std::uint64_t>>;  ///< group and sequence number of an operation
  struct Alarm {
    double begun;
    std::size_t notified = 0;  ///< number of helpers_ that the alarm was sent to
    bool taken = false;
  };
  /// A question that this rank answers on behalf of its subtree.
  struct Question {
    std::size_t root, asker;
    std::uint64_t number;
    double end;                      ///< when the report is sent, with the answers received so far
    std::vector<std::size_t> asked;  ///< children that have not reported yet
    std::vector<RankAnswer> answers;
    bool reported = false;
  };
  struct Inquiry {
    double begun, patience;
    std::vector<RankState> states;
    std::size_t silent;
    bool asked_all = false;  ///< ranks whose answers did not arrive along the tree have been asked
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
  std::vector<std::size_t> helpers_;  ///< receivers of an alarm, tried in order
  std::optional<Alarm> alarm_;
  double quiet_until_ = -std::numeric_limits<double>::infinity();  ///< an inquiry is under way until then
  Wait wait_, answered_wait_;                                      ///< this rank's wait now, and in its last answer
  double excused_ = 0.0;                                           ///< seconds of the wait that do not count
  std::vector<Question> questions_;                                ///< one per root
  std::optional<Inquiry> inquiry_;
  std::uint64_t inquiries_ = 0;
  std::size_t excuses_ = 0;
  std::optional<std::vector<RankState>> verdict_;
};

}  // namespace mylos::parallel
