// The event file is read again by a decoder that shares nothing with the encoder but the CRC.

#include "core/crc32c.hpp"
#include "tests/support/temporary.hpp"
#include "train/tensorboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace mylos::train {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;

/// Reads values from the front of a text. Errors: std::out_of_range where it is too short.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool empty() const { return text_.empty(); }

  std::string_view bytes(std::size_t count) {
    if (count > text_.size()) throw std::out_of_range("the text ends inside a value");
    const std::string_view front = text_.substr(0, count);
    text_.remove_prefix(count);
    return front;
  }
  template <class T>
  T plain() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view delimited() { return bytes(varint()); }

 private:
  std::string_view text_;
};

struct Event {
  double wall_time = 0.0;
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
  std::string session;
};

std::pair<std::string, float> decode_value(std::string_view text) {
  Reader reader(text);
  std::pair<std::string, float> value;
  while (!reader.empty()) {
    const std::uint64_t key = reader.varint();
    if (key == ((1 << 3) | 2)) {
      value.first = reader.delimited();
    } else if (key == ((2 << 3) | 5)) {
      value.second = reader.plain<float>();
    } else {
      ADD_FAILURE() << "Summary.Value has key " << key;
    }
  }
  return value;
}

Event decode_event(std::string_view text) {
  Reader reader(text);
  Event event;
  while (!reader.empty()) {
    const std::uint64_t key = reader.varint();
    if (key == ((1 << 3) | 1)) {
      event.wall_time = reader.plain<double>();
    } else if (key == (2 << 3)) {
      event.step = reader.varint();
    } else if (key == ((3 << 3) | 2)) {
      event.version = reader.delimited();
    } else if (key == ((7 << 3) | 2)) {
      event.session = reader.delimited();
    } else if (key == ((5 << 3) | 2)) {
      Reader summary(reader.delimited());
      while (!summary.empty()) {
        EXPECT_EQ(summary.varint(), (1u << 3) | 2u);
        event.scalars.insert(decode_value(summary.delimited()));
      }
    } else {
      ADD_FAILURE() << "Event has key " << key;
    }
  }
  return event;
}

std::uint32_t masked(std::string_view text) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(text.data(), text.size())));
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  const std::string text = tests::read_file(path);
  Reader reader(text);
  std::vector<Event> events;
  while (!reader.empty()) {
    const std::string_view length = reader.bytes(8);
    EXPECT_EQ(reader.plain<std::uint32_t>(), masked(length));
    const std::string_view event = reader.bytes(Reader(length).plain<std::uint64_t>());
    EXPECT_EQ(reader.plain<std::uint32_t>(), masked(event));
    events.push_back(decode_event(event));
  }
  return events;
}

StepReport step_report(std::size_t step, double loss) {
  return {.step = step,
          .epoch = 0.5,
          .loss = loss,
          .gradient_norm = 2.5,
          .learning_rate = 0.25,
          .sequences = 8,
          .tokens = 3000,
          .seconds = 1.5,
          .memory = 4096};
}

class TensorBoardFile : public testing::Test {
 protected:
  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "events";
  double time_ = 1000.5;
  TensorBoard board_{path_, [this] { return time_++; }};
};

TEST_F(TensorBoardFile, BeginsWithTheVersion) {
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1000.5);
}

TEST_F(TensorBoardFile, HoldsAStepAsItHappens) {
  board_.start({.steps = 600, .steps_per_epoch = 1000});
  board_.step(step_report(300, 1.5));
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step, 300u);
  EXPECT_EQ(events[1].wall_time, 1001.5);
  EXPECT_THAT(events[1].scalars,
              ElementsAre(std::pair("perf/memory", 4096.0f), std::pair("perf/tokens_per_second", 2000.0f),
                          std::pair("train/gradient_norm", 2.5f), std::pair("train/learning_rate", 0.25f),
                          std::pair("train/loss", 1.5f)));
}

TEST_F(TensorBoardFile, HoldsTheLossScaleWhereOneAdapts) {
  train::StepReport report = step_report(1, 1.5);
  report.loss_scale = 32768.0;
  board_.step(report);
  EXPECT_EQ(read_events(path_)[1].scalars.at("train/loss_scale"), 32768.0f);
}

TEST_F(TensorBoardFile, HoldsEvaluationsUnderTheirNames) {
  board_.evaluation({.step = 7, .metrics = {{"validation_loss", 0.5}, {"exact", 40.0}, {"f1", 50.0}}});
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step, 7u);
  EXPECT_THAT(events[1].scalars,
              ElementsAre(std::pair("eval/exact", 40.0f), std::pair("eval/f1", 50.0f), std::pair("eval/loss", 0.5f)));
}

TEST_F(TensorBoardFile, AveragesTheLossesOfEachEpochAndOfTheLastPart) {
  board_.start({.steps = 3, .steps_per_epoch = 2});
  board_.step(step_report(1, 1.0));
  board_.step(step_report(2, 2.0));
  board_.step(step_report(3, 8.0));
  board_.finish();
  std::map<std::uint64_t, float> losses;
  for (const Event& event : read_events(path_)) {
    if (event.scalars.contains("train/epoch_loss")) losses[event.step] = event.scalars.at("train/epoch_loss");
  }
  EXPECT_THAT(losses, ElementsAre(std::pair(2u, 1.5f), std::pair(3u, 8.0f)));
}

TEST_F(TensorBoardFile, SaysWhereARunGoesOnSoThatLaterStepsOfOtherFilesAreVoid) {
  board_.start({.steps = 600, .first_step = 40, .steps_per_epoch = 1000});
  const auto events = read_events(path_);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step, 41u);
  EXPECT_EQ(events[1].session, std::string("\x08\x01"));  // status: START
}

TEST_F(TensorBoardFile, SaysAFinishedEpochOnce) {
  board_.start({.steps = 1, .steps_per_epoch = 1});
  board_.step(step_report(1, 1.0));
  board_.finish();
  EXPECT_EQ(read_events(path_).size(), 3u);
}

TEST(TensorBoard, NamesTheFileForTimeHostAndProcess) {
  const tests::TemporaryDirectory directory;
  const TensorBoard board(directory.path());
  const auto entry = *std::filesystem::directory_iterator(directory.path());
  const std::string name = entry.path().filename();
  EXPECT_THAT(name, MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\..+\\." + std::to_string(::getpid())));
}

TEST(TensorBoard, NamesTheFileOnAFullDisk) {
  EXPECT_EQ(tests::error_of([] { TensorBoard board("/dev/full", [] { return 0.0; }); }),
            "cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace mylos::train
