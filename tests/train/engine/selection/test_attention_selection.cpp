#include "train/engine/selection/attention_selection.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "tests/support/shared_directory.hpp"
#include "tests/train/engine/listed_task.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

/// The selection of an attention kernel on one rank and on several, with timings that the tests make up.
namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using Kernel = AttentionKernel;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<Kernel> both = {Kernel::tensor_cores, Kernel::cudnn, Kernel::portable};

TimedAttention attention_over(std::vector<std::size_t> lengths) {
  return {.shape = {.heads = 12, .key_value_heads = 4, .head_size = 64, .causal = true},
          .precision = Precision::bfloat16,
          .lengths = std::move(lengths)};
}

class AttentionSelectionOnRanks : public testing::Test {
 protected:
  bool is_first() const { return ranks_.rank() == 0; }
  AttentionRequest request(std::vector<std::size_t> lengths = {384, 100, 200}) const {
    return {.candidates = both,
            .prove = [this](Kernel kernel) { return proofs_.at(kernel); },
            .timed = [lengths = std::move(lengths)] { return attention_over(lengths); },
            .cache = directory_.path()};
  }
  AttentionSelection select(const AttentionRequest& request) {
    return select_attention(
        ranks_, request, [this](const std::string& line) { notices_.push_back(line); },
        [this](auto kernels, const TimedAttention& attention, const Notice& notice) {
          EXPECT_TRUE(is_first()) << "only the first rank times";
          timed_.assign(kernels.begin(), kernels.end());
          lengths_ = attention.lengths;
          ++measurements_;
          if (!left_out_.empty()) notice(left_out_);
          return seconds_;
        });
  }
  /// Returns how many kernels the first rank has timed since the last call.
  std::size_t measurements() { return std::exchange(measurements_, 0); }
  std::size_t on_first(std::size_t count) const { return is_first() ? count : 0; }

  parallel::Communicator& ranks_ = tests::launch().world();
  const tests::SharedDirectory directory_;
  /// Each rank would time otherwise: only those of the first rank may count.
  AttentionSeconds seconds_ = {{Kernel::tensor_cores, is_first() ? 2.0 : 1.0}, {Kernel::cudnn, is_first() ? 1.0 : 2.0}};
  std::map<Kernel, AttentionProof> proofs_ = {
      {Kernel::tensor_cores, {Kernel::tensor_cores, ranks_.rank() == 0 ? 0.25 : 0.5}},
      {Kernel::cudnn, {Kernel::cudnn, 0.1}}};
  std::string left_out_;
  std::vector<Kernel> timed_;
  std::vector<std::size_t> lengths_;
  std::vector<std::string> notices_;

 private:
  std::size_t measurements_ = 0;
};

TEST_F(AttentionSelectionOnRanks, TakesTheFastestOnEveryRank) {
  const AttentionSelection selection = select(request());
  EXPECT_EQ(selection.kernel, Kernel::cudnn);
  EXPECT_EQ(selection.seconds, (AttentionSeconds{{Kernel::tensor_cores, 2.0}, {Kernel::cudnn, 1.0}}));
  EXPECT_EQ(measurements(), on_first(1));
  if (!is_first()) return;
  EXPECT_THAT(timed_, ElementsAre(Kernel::tensor_cores, Kernel::cudnn)) << "the portable one is not timed";
  EXPECT_THAT(lengths_, ElementsAre(384, 100, 200));
}

TEST_F(AttentionSelectionOnRanks, TakesTheTimesFromTheCacheForTheSameShape) {
  select(request());
  measurements();
  seconds_ = {{Kernel::tensor_cores, 1.0}, {Kernel::cudnn, 2.0}};
  const AttentionSelection again = select(request({380, 90, 201}));
  EXPECT_EQ(again.kernel, Kernel::cudnn);
  EXPECT_EQ(again.seconds.at(Kernel::cudnn), 1.0);
  EXPECT_EQ(measurements(), 0u);
  // Another shape, here a longer sequence, is timed, and the cache then has both.
  EXPECT_EQ(select(request({600, 84})).kernel, Kernel::tensor_cores);
  EXPECT_EQ(measurements(), on_first(1));
  EXPECT_EQ(select(request()).kernel, Kernel::cudnn);
  EXPECT_EQ(select(request({600, 84})).kernel, Kernel::tensor_cores);
  EXPECT_EQ(measurements(), 0u);
}

TEST_F(AttentionSelectionOnRanks, LeavesOutAKernelThatThrowsAndDoesNotRememberIt) {
  seconds_ = {{Kernel::tensor_cores, 2.0}};
  left_out_ = "attention: cudnn is left out: no engine";
  EXPECT_EQ(select(request()).kernel, Kernel::tensor_cores);
  if (is_first()) {
    EXPECT_THAT(notices_, ElementsAre(left_out_));
  } else {
    EXPECT_THAT(notices_, IsEmpty());
  }
  EXPECT_EQ(measurements(), on_first(1));
  seconds_[Kernel::cudnn] = 1.0;
  EXPECT_EQ(select(request()).kernel, Kernel::cudnn) << "it can be timed again";
  EXPECT_EQ(measurements(), on_first(1));
}

TEST_F(AttentionSelectionOnRanks, TimesNothingIfOnlyOneIsLeft) {
  AttentionRequest one = request();
  one.timed = [] { return fail("timed"), TimedAttention(); };
  one.candidates = {Kernel::tensor_cores, Kernel::portable};
  EXPECT_EQ(select(one).kernel, Kernel::tensor_cores);
  one.candidates = {Kernel::portable};
  const AttentionSelection portable = select(one);
  EXPECT_EQ(portable.kernel, Kernel::portable);
  EXPECT_THAT(portable.seconds, IsEmpty());
  EXPECT_EQ(measurements(), 0u);
}

TEST_F(AttentionSelectionOnRanks, TakesOnlyWhatEveryRankCanRun) {
  if (ranks_.size() == 1) GTEST_SKIP() << "needs several ranks";
  AttentionRequest unlike = request();
  const bool is_last = ranks_.rank() + 1 == ranks_.size();
  if (is_last) unlike.candidates = {Kernel::tensor_cores, Kernel::portable};
  EXPECT_EQ(select(unlike).kernel, Kernel::tensor_cores);
  unlike.candidates = {is_last ? Kernel::tensor_cores : Kernel::cudnn, Kernel::portable};
  EXPECT_EQ(select(unlike).kernel, Kernel::portable);
  EXPECT_EQ(measurements(), 0u);
}

TEST_F(AttentionSelectionOnRanks, DoesNotDependOnTimesIfDeterministic) {
  AttentionRequest deterministic = request();
  deterministic.deterministic = true;
  EXPECT_EQ(select(deterministic).kernel, Kernel::tensor_cores);
  EXPECT_EQ(measurements(), 0u);
}

TEST_F(AttentionSelectionOnRanks, RepeatsTheRecordedKernelIfItIsACandidate) {
  AttentionRequest recorded = request();
  recorded.recorded = Kernel::tensor_cores;
  EXPECT_EQ(select(recorded).kernel, Kernel::tensor_cores);
  EXPECT_EQ(measurements(), 0u);
  recorded.recorded = Kernel::portable;  // such as that of a run on a CPU
  EXPECT_EQ(select(recorded).kernel, Kernel::cudnn);
  EXPECT_EQ(measurements(), on_first(1));
}

TEST_F(AttentionSelectionOnRanks, LeavesOutWhatDoesNotAgreeOnADevice) {
  const bool is_last = ranks_.rank() + 1 == ranks_.size();
  const std::string where = ranks_.size() == 1 ? "" : fmt::format(" (rank {})", ranks_.size() - 1);
  if (is_last) proofs_[Kernel::cudnn].fault = "out differs";
  const AttentionSelection selection = select(request());
  EXPECT_EQ(selection.kernel, Kernel::tensor_cores);
  EXPECT_EQ(measurements(), 0u) << "only one is left";
  EXPECT_THAT(notices_, ElementsAre("attention: cudnn is left out: out differs" + where));
  const double largest = ranks_.size() == 1 ? 0.25 : 0.5;
  const nlohmann::ordered_json proofs = to_json(selection.proofs);
  EXPECT_EQ(proofs["tensor-cores"], largest);
  EXPECT_EQ(proofs["cudnn"], "out differs" + where);
  if (is_last) proofs_[Kernel::tensor_cores].fault = "no engine";
  EXPECT_EQ(select(request()).kernel, Kernel::portable);
}

TEST_F(AttentionSelectionOnRanks, EndsARunThatAsksForWhatDoesNotAgree) {
  AttentionRequest asked = request();
  asked.candidates = {Kernel::cudnn};
  asked.asked = true;
  EXPECT_EQ(select(asked).kernel, Kernel::cudnn);
  proofs_[Kernel::cudnn].fault = "out differs";
  EXPECT_EQ(tests::error_of([&] { select(asked); }),
            fmt::format("{}: out differs; use {}", setting("attention", "cudnn"), setting("attention", "portable")));
  asked.candidates = {Kernel::portable};
  EXPECT_EQ(select(asked).kernel, Kernel::portable) << "it is what others are compared with";
}

/// A kernel that was fast enough for the recorded run is not used where it is wrong.
TEST_F(AttentionSelectionOnRanks, DoesNotRepeatARecordedKernelThatDoesNotAgree) {
  AttentionRequest recorded = request();
  recorded.recorded = Kernel::tensor_cores;
  proofs_[Kernel::tensor_cores].fault = "out differs";
  EXPECT_EQ(select(recorded).kernel, Kernel::cudnn);
}

TEST_F(AttentionSelectionOnRanks, AnErrorOfTheFirstRankIsThrownOnAll) {
  AttentionRequest failing = request();
  failing.timed = [] { return fail("no batch"), TimedAttention(); };
  EXPECT_THAT(tests::error_of([&] { select(failing); }), HasSubstr("no batch"));
}

TEST(AttentionKeys, DependOnTheShapeAndTheBucketsOfABatch) {
  const AttentionKey key = key_of(attention_over({384, 100, 200}));
  EXPECT_EQ(key, (AttentionKey{12, 4, 64, true, Precision::bfloat16, 2, 512, 256}));
  EXPECT_EQ(key, key_of(attention_over({256, 256})));
  EXPECT_NE(key, key_of(attention_over({256, 255})));
  EXPECT_NE(key, key_of(attention_over({255, 255, 2})));
  EXPECT_NE(key, key_of(attention_over({512})));
  const auto differs = [&](const std::function<void(TimedAttention&)>& change) {
    TimedAttention other = attention_over({384, 100, 200});
    change(other);
    return key_of(other) != key;
  };
  EXPECT_TRUE(differs([](auto& other) { other.shape.heads = 16; }));
  EXPECT_TRUE(differs([](auto& other) { other.shape.key_value_heads = 12; }));
  EXPECT_TRUE(differs([](auto& other) { other.shape.head_size = 128; }));
  EXPECT_TRUE(differs([](auto& other) { other.shape.causal = false; }));
  EXPECT_TRUE(differs([](auto& other) { other.shape.window = 128; }));
  EXPECT_TRUE(differs([](auto& other) { other.precision = Precision::float16; }));
  EXPECT_FALSE(differs([](auto& other) { other.shape.kernel = Kernel::cudnn; }));
  EXPECT_THAT(tests::error_of([] { key_of(attention_over({})); }), HasSubstr("no sequences"));
}

AttentionTimings example() {
  TimedAttention windowed = attention_over({384});
  windowed.shape.window = 128;
  return {{key_of(windowed), {{Kernel::portable, 2.0}}},
          {key_of(attention_over({384, 100})), {{Kernel::tensor_cores, 1.5e-4}, {Kernel::cudnn, 1.25e-4}}},
          {key_of(attention_over({1})), {{Kernel::portable, 3.0}}}};
}

TEST(AttentionTimingsJson, IsReadBack) {
  EXPECT_EQ(parse_attention_timings(json::parse(to_json(example()).dump()), "x"), example());
}

TEST(AttentionTimingsJson, WrongValuesAreNamed) {
  const auto error = [](const char* key, const json& value) {
    json written = to_json(example());
    written[1][key] = value;
    return tests::error_of([&] { parse_attention_timings(written, "cache"); });
  };
  EXPECT_EQ(error("precision", "double"), "cache: [1]: precision \"double\": expected float, bfloat16 or half");
  EXPECT_EQ(error("seconds", {{"flash", 1.0}}), "cache: [1].seconds.flash: no attention kernel has this name");
  EXPECT_EQ(error("seconds", {{"cudnn", 0.0}}), "cache: [1].seconds.cudnn: expected a positive number of seconds");
  EXPECT_THAT(error("seconds", {{"cudnn", "1"}}), HasSubstr("cache: [1].seconds.cudnn"));
  EXPECT_THAT(error("heads", -1), HasSubstr("cache: [1].heads"));
  EXPECT_THAT(error("causal", 1), HasSubstr("cache: [1].causal"));
  EXPECT_THAT(error("window", "all"), HasSubstr("cache: [1].window"));
  EXPECT_THAT(tests::error_of([] { parse_attention_timings(json::object(), "cache"); }), HasSubstr("cache"));
}

TEST(AttentionCacheFile, ADamagedOneCountsAsEmptyAndIsWrittenAnew) {
  const tests::TemporaryDirectory directory;
  const AttentionCache cache(directory / "a" / "b");
  EXPECT_THAT(cache.read(), IsEmpty());
  cache.write(example());
  EXPECT_EQ(AttentionCache(directory / "a" / "b").read(), example());
  std::stringstream whole;
  whole << std::ifstream(cache.file()).rdbuf();
  json foreign = json::parse(whole.str()), unknown = foreign;
  foreign["machine"] = "another";
  unknown["choice"][0]["seconds"] = {{"flash", 1.0}};
  for (const std::string& damaged : {std::string(), whole.str().substr(0, 40), foreign.dump(), unknown.dump()}) {
    tests::write_file(cache.file(), damaged);
    EXPECT_THAT(cache.read(), IsEmpty()) << damaged;
  }
  AttentionCache("").write(example());
  EXPECT_THAT(AttentionCache("").read(), IsEmpty());
}

/// A sample's number is its number of rows.
TEST(FirstLengths, AreThoseOfAMicroBatchOfTheFirstRank) {
  const ListedTask task({{30, 10, 20, 40}, {1}});
  EXPECT_THAT(first_lengths(task, {}, 1), ElementsAre(30, 10, 20, 40));
  EXPECT_THAT(first_lengths(task, {}, 2), ElementsAre(10, 40)) << "the longest samples are assigned first";
  TrainConfig by_samples, by_tokens, by_parts;
  by_samples.micro_batch = 3;
  by_tokens.micro_tokens = 45;
  by_parts.accumulation = 2;
  EXPECT_THAT(first_lengths(task, by_samples, 1), ElementsAre(30, 10, 20));
  EXPECT_THAT(first_lengths(task, by_tokens, 1), ElementsAre(30, 10));
  EXPECT_THAT(first_lengths(task, by_parts, 1), ElementsAre(30, 10));
  const ListedTask large({{10'000, 6'000, 6'000}});
  EXPECT_THAT(first_lengths(large, {}, 1), ElementsAre(10'000, 6'000)) << "at most 16,384 rows";
  by_parts.accumulation = 1;
  EXPECT_THAT(first_lengths(large, by_parts, 1), ElementsAre(10'000, 6'000));
  const ListedTask longest({{20'000, 10}});
  EXPECT_THAT(first_lengths(longest, {}, 1), ElementsAre(20'000)) << "at least one sample";
}

}  // namespace
}  // namespace mylos::train
