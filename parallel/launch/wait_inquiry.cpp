#include "parallel/launch/wait_inquiry.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

using Kind = WatchMessage::Kind;
using Activity = RankState::Activity;

/// Returns how long the rank that holds an inquiry waits for answers, in seconds.
double patience_of(double limit) { return std::clamp(limit / 4, 1.0, 10.0); }

/// Fractions of that time: for an alarm to be taken; for answers to arrive along the tree; until the verdict. The rest
/// is for sending the alarm and the verdict.
constexpr double alarm_part = 0.2, tree_part = 0.5, verdict_part = 0.75;
/// After this fraction a new alarm may be raised: an inquiry that has not ended by then, or whose verdict had no
/// effect, is over.
constexpr double quiet_part = 1.5;

bool is_too_long(const RankState& state, double limit) {
  return state.activity == Activity::waiting && state.seconds >= limit;
}

std::vector<std::size_t> helpers_of(std::size_t size, std::size_t rank) {
  std::vector<std::size_t> helpers;
  if (const auto parent = WatchTree(size, 0).parent(rank)) helpers.push_back(*parent);
  for (const std::size_t head : watch_heads(size)) {
    if (head == rank) break;
    if (std::find(helpers.begin(), helpers.end(), head) == helpers.end()) helpers.push_back(head);
  }
  return helpers;
}

}  // namespace

WaitInquiry::WaitInquiry(std::size_t size, std::size_t rank, Send send)
    : size_(size), rank_(rank), send_(std::move(send)), helpers_(helpers_of(size, rank)) {}

void WaitInquiry::receive(std::size_t from, const WatchMessage& message, const Moment& moment) {
  note_wait(moment.own);
  switch (message.kind) {
    case Kind::alarm:
    case Kind::lead:
      send_(from, {.kind = Kind::taken});
      if (is_asked(moment.now)) return;
      if (message.kind == Kind::lead) return begin_inquiry(moment);
      return raise_alarm(moment);
    case Kind::taken:
      if (alarm_) alarm_->taken = true;
      return;
    case Kind::question:
      return answer(from, message, moment);
    case Kind::own_question:
      answered_wait_ = wait_;
      send_(from, {Kind::report, message.root, message.number, 0.0, {{rank_, moment.own}}});
      return;
    case Kind::report:
      return take(from, message);
    case Kind::excuse:
      return take_excuse(message);
    case Kind::verdict:
      return take_verdict(message, moment.own);
    case Kind::error:
      return;
  }
}

void WaitInquiry::look(const Moment& moment) {
  note_wait(moment.own);
  if (is_too_long(moment.own, moment.limit + excused_) && !is_asked(moment.now)) raise_alarm(moment);
  go_on_with_alarm(moment);
  for (Question& question : questions_) {
    if (!question.reported && moment.now >= question.end) report(question);
  }
  go_on_with_inquiry(moment);
}

void WaitInquiry::note_wait(const RankState& own) {
  const Wait wait = own.activity == Activity::waiting ? Wait{{own.group, own.sequence}} : std::nullopt;
  if (wait != wait_) excused_ = 0.0;
  wait_ = wait;
}

void WaitInquiry::be_quiet(const Moment& moment, double patience) {
  quiet_until_ = moment.now + quiet_part * patience;
  alarm_.reset();
  answered_wait_ = wait_;
}

void WaitInquiry::raise_alarm(const Moment& moment) {
  if (!alarm_) alarm_ = Alarm{.begun = moment.now};
}

void WaitInquiry::go_on_with_alarm(const Moment& moment) {
  if (!alarm_) return;
  const double patience = patience_of(moment.limit), passed = moment.now - alarm_->begun;
  if (alarm_->taken) {
    // The rank that took the alarm may have ended since.
    if (passed >= quiet_part * patience) alarm_.reset();
    return;
  }
  if (passed < static_cast<double>(alarm_->notified) * alarm_part * patience) return;
  if (alarm_->notified == helpers_.size()) return begin_inquiry(moment);
  const Kind kind = alarm_->notified == 0 ? Kind::alarm : Kind::lead;
  send_(helpers_[alarm_->notified++], {.kind = kind});
}

void WaitInquiry::answer(std::size_t from, const WatchMessage& question, const Moment& moment) {
  be_quiet(moment, question.seconds);
  std::erase_if(questions_, [&](const Question& each) { return each.root == question.root || each.reported; });
  const WatchTree tree(size_, question.root);
  const double part = 1.0 - static_cast<double>(tree.level(rank_)) / static_cast<double>(tree.height());
  Question& mine = questions_.emplace_back(Question{.root = question.root,
                                                    .asker = from,
                                                    .number = question.number,
                                                    .end = moment.now + part * tree_part * question.seconds,
                                                    .asked = tree.children(rank_),
                                                    .answers = {{rank_, moment.own}}});
  for (const std::size_t child : mine.asked) send_(child, question);
  if (mine.asked.empty()) report(mine);
}

void WaitInquiry::report(Question& question) {
  question.reported = true;
  send_(question.asker, {Kind::report, question.root, question.number, 0.0, std::move(question.answers)});
}

void WaitInquiry::take(std::size_t from, const WatchMessage& message) {
  if (message.root == rank_) {
    if (!inquiry_ || message.number != inquiries_) return;
    for (const RankAnswer& answer : message.answers) {
      RankState& state = inquiry_->states[answer.rank];
      if (state.activity == Activity::silent) --inquiry_->silent;
      state = answer.state;
    }
    return;
  }
  for (Question& question : questions_) {
    if (question.root != message.root || question.number != message.number || question.reported) continue;
    std::erase(question.asked, from);
    question.answers.insert(question.answers.end(), message.answers.begin(), message.answers.end());
    if (question.asked.empty()) report(question);
  }
}

void WaitInquiry::take_excuse(const WatchMessage& excuse) {
  for (const std::size_t child : WatchTree(size_, excuse.root).children(rank_)) send_(child, excuse);
  if (wait_ == answered_wait_) excused_ = excuse.seconds;
  quiet_until_ = -std::numeric_limits<double>::infinity();
  ++excuses_;
}

void WaitInquiry::take_verdict(const WatchMessage& verdict, const RankState& own) {
  // The rank that holds the inquiry may not know yet that the operation this rank waited for has ended.
  if (!wait_ || wait_ != answered_wait_) return;
  verdict_.emplace(size_);
  for (const RankAnswer& answer : verdict.answers) (*verdict_)[answer.rank] = answer.state;
  (*verdict_)[rank_] = own;
}

void WaitInquiry::begin_inquiry(const Moment& moment) {
  if (inquiry_) return;
  const double patience = patience_of(moment.limit);
  be_quiet(moment, patience);
  inquiry_ =
      Inquiry{.begun = moment.now, .patience = patience, .states = std::vector<RankState>(size_), .silent = size_ - 1};
  inquiry_->states[rank_] = moment.own;
  ++inquiries_;
  for (const std::size_t child : WatchTree(size_, rank_).children(rank_)) {
    send_(child, {.kind = Kind::question, .root = rank_, .number = inquiries_, .seconds = patience});
  }
}

void WaitInquiry::go_on_with_inquiry(const Moment& moment) {
  if (!inquiry_) return;
  const std::vector<RankState>& states = inquiry_->states;
  // A rank that does not answer may be the one that the ranks working with files wait for, so there is no excuse.
  const double excused = inquiry_->silent > 0 ? 0.0 : excused_seconds(states, moment.limit);
  const auto accuser = std::find_if(states.begin(), states.end(),
                                    [&](const RankState& state) { return is_too_long(state, moment.limit + excused); });
  const double passed = moment.now - inquiry_->begun;
  if (inquiry_->silent == 0 && accuser == states.end()) {
    inquiry_.reset();
    take_excuse({.kind = Kind::excuse, .root = rank_, .seconds = excused});
  } else if (passed >= verdict_part * inquiry_->patience) {
    if (accuser != states.end()) end_inquiry(moment, static_cast<std::size_t>(accuser - states.begin()));
    inquiry_.reset();
  } else if (passed >= tree_part * inquiry_->patience && !inquiry_->asked_all) {
    inquiry_->asked_all = true;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      if (states[rank].activity != Activity::silent) continue;
      send_(rank, {.kind = Kind::own_question, .root = rank_, .number = inquiries_});
    }
  }
}

void WaitInquiry::end_inquiry(const Moment& moment, std::size_t accuser) {
  WatchMessage verdict{.kind = Kind::verdict, .root = rank_, .number = inquiries_};
  for (std::size_t rank = 0; rank < size_; ++rank) verdict.answers.push_back({rank, inquiry_->states[rank]});
  if (accuser == rank_) {
    take_verdict(verdict, moment.own);
  } else {
    send_(accuser, verdict);
  }
}

}  // namespace mylos::parallel
