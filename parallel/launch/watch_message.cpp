#include "parallel/launch/watch_message.hpp"

#include "core/base/error.hpp"

#include <array>
#include <cstring>
#include <type_traits>

namespace mylos::parallel {
namespace {

struct Head {
  WatchMessage::Kind kind = WatchMessage::Kind::error;
  std::uint64_t root = 0, number = 0, answers = 0;
  double seconds = 0.0;
};

struct Answer {
  RankState::Activity activity = RankState::Activity::silent;
  std::uint64_t rank = 0, step = 0, bytes = 0, group = 0, sequence = 0;
  double seconds = 0.0, file_seconds = 0.0, progress_seconds = 0.0;
  std::array<char, sent_operation + 1> operation{};
};

static_assert(std::is_trivially_copyable_v<Head> && std::is_trivially_copyable_v<Answer>);

Answer answer_of(const RankAnswer& of) {
  const RankState& state = of.state;
  Answer answer{.activity = state.activity,
                .rank = of.rank,
                .step = state.step,
                .bytes = state.bytes,
                .group = state.group,
                .sequence = state.sequence,
                .seconds = state.seconds,
                .file_seconds = state.file_seconds,
                .progress_seconds = state.progress_seconds};
  state.operation.copy(answer.operation.data(), sent_operation);
  return answer;
}

RankAnswer answer_in(const Answer& answer) {
  return {answer.rank,
          {.host = {},
           .activity = answer.activity,
           .step = answer.step,
           .operation = answer.operation.data(),
           .bytes = answer.bytes,
           .group = answer.group,
           .sequence = answer.sequence,
           .seconds = answer.seconds,
           .file_seconds = answer.file_seconds,
           .progress_seconds = answer.progress_seconds}};
}

}  // namespace

std::vector<std::byte> bytes_of(const WatchMessage& message) {
  const Head head{message.kind, message.root, message.number, message.answers.size(), message.seconds};
  std::vector<std::byte> bytes(sizeof head + message.answers.size() * sizeof(Answer));
  std::memcpy(bytes.data(), &head, sizeof head);
  std::byte* to = bytes.data() + sizeof head;
  for (const RankAnswer& each : message.answers) {
    const Answer answer = answer_of(each);
    std::memcpy(to, &answer, sizeof answer);
    to += sizeof answer;
  }
  return bytes;
}

WatchMessage watch_message_in(std::span<const std::byte> bytes) {
  Head head;
  require(bytes.size() >= sizeof head, "a message of the watch is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  require(bytes.size() == sizeof head + head.answers * sizeof(Answer), "a message of the watch has another length");
  WatchMessage message{.kind = head.kind, .root = head.root, .number = head.number, .seconds = head.seconds};
  for (std::size_t at = sizeof head; at < bytes.size(); at += sizeof(Answer)) {
    Answer answer;
    std::memcpy(&answer, bytes.data() + at, sizeof answer);
    message.answers.push_back(answer_in(answer));
  }
  return message;
}

}  // namespace mylos::parallel
