#include "core/batch.hpp"

#include "tests/support/temporary.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace mylos {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

template <class T>
std::vector<T> host(const ConstVector<T>& device) {
  const auto copy = Kokkos::create_mirror_view_and_copy(HostSpace(), device);
  return {copy.data(), copy.data() + copy.size()};
}

void begin(Batch& batch, const std::vector<std::size_t>& lengths, const std::vector<std::uint32_t>& ids) {
  batch.reset(lengths, ids);
}

/// Counts the bytes of Kokkos' copies during its lifetime. Only one at a time.
class CopyRecorder {
 public:
  CopyRecorder() {
    counted() = 0;
    Kokkos::Tools::Experimental::set_begin_deep_copy_callback(&CopyRecorder::copy);
  }
  ~CopyRecorder() { Kokkos::Tools::Experimental::set_begin_deep_copy_callback(nullptr); }
  CopyRecorder(const CopyRecorder&) = delete;
  CopyRecorder& operator=(const CopyRecorder&) = delete;

  std::uint64_t bytes() const { return counted(); }

 private:
  static std::uint64_t& counted() {
    static std::uint64_t bytes = 0;
    return bytes;
  }
  static void copy(Kokkos::Tools::SpaceHandle, const char*, const void*, Kokkos::Tools::SpaceHandle, const char*,
                   const void*, std::uint64_t bytes) {
    counted() += bytes;
  }
};

TEST(Batch, PacksSamplesRowAfterRowAndGroupsRowsByPosition) {
  Batch batch;
  begin(batch, {2, 1, 3}, {7, 5, 6});
  EXPECT_EQ(batch.shape().samples, 3u);
  EXPECT_EQ(batch.shape().rows, 6u);
  EXPECT_EQ(batch.shape().longest, 3u);
  EXPECT_THAT(host(batch.sample_starts()), ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(std::vector(batch.host_sample_starts().begin(), batch.host_sample_starts().end()),
              ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(host(batch.sample_ids()), ElementsAre(7, 5, 6));
  EXPECT_THAT(host(batch.positions()), ElementsAre(0, 1, 0, 0, 1, 2));
  EXPECT_THAT(host(batch.samples_of_rows()), ElementsAre(0, 0, 1, 2, 2, 2));
  batch.group_positions();
  const IndexGroups groups = batch.position_groups();
  EXPECT_THAT(host(groups.values), ElementsAre(0, 1, 2));
  EXPECT_THAT(host(groups.starts), ElementsAre(0, 3, 5, 6));
  EXPECT_THAT(host(groups.rows), ElementsAre(0, 2, 3, 1, 4, 5));
  begin(batch, {1}, {0});
  EXPECT_THAT(error_of([&] { batch.position_groups(); }), HasSubstr("batch: group_positions was not called"));
  batch.group_positions();
  EXPECT_THAT(host(batch.position_groups().rows), ElementsAre(0));
}

TEST(Batch, RowsBeginAtTheFirstPositionOfTheirSample) {
  Batch batch;
  const std::vector<std::size_t> lengths{2, 1, 3}, first{40, 0, 7};
  const std::vector<std::uint32_t> ids{1, 2, 3};
  batch.reset(lengths, ids, first);
  EXPECT_THAT(host(batch.positions()), ElementsAre(40, 41, 0, 7, 8, 9));
  EXPECT_THAT(host(batch.samples_of_rows()), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(error_of([&] { batch.group_positions(); }), HasSubstr("rows with first positions cannot be grouped"));
  begin(batch, {1, 2}, {0, 1});
  EXPECT_THAT(host(batch.positions()), ElementsAre(0, 0, 1));
}

TEST(Batch, ForInferenceGroupsNothing) {
  Batch batch({}, Batch::Purpose::inference);
  begin(batch, {2, 1}, {0, 1});
  const tests::KokkosRecorder recorder;
  batch.set_indices("tokens", std::vector<std::int32_t>{9, 2, 9});
  batch.group_positions();
  for (const auto& [label, bytes] : recorder.allocations()) EXPECT_EQ(label, "mylos::Batch::tokens");
  EXPECT_THAT(recorder.launches(), ::testing::IsEmpty());
  EXPECT_THAT(host(batch.integers("tokens")), ElementsAre(9, 2, 9));
  EXPECT_THAT(host(batch.positions()), ElementsAre(0, 1, 0));
  EXPECT_EQ(batch.distinct("tokens"), 0u);
  EXPECT_THAT(error_of([&] { batch.groups("tokens"); }),
              HasSubstr("batch: made for inference, which does not group \"tokens\""));
  EXPECT_THAT(error_of([&] { batch.position_groups(); }), HasSubstr("made for inference, which groups no positions"));
}

/// The host uploads a number for each sample, not one for each row.
TEST(Batch, CopiesOnlyWhatItsSamplesNeed) {
  Batch batch;
  const std::vector<std::size_t> lengths(8, 1000);
  const std::vector<std::uint32_t> ids(8, 0);
  batch.reset(lengths, ids);
  const CopyRecorder recorder;
  batch.reset(lengths, ids);
  batch.group_positions();
  EXPECT_EQ(recorder.bytes(), 9 * sizeof(std::size_t) + 8 * sizeof(std::uint32_t));
}

TEST(Batch, GroupsIndicesByValueInTheOrderOfRows) {
  Batch batch;
  begin(batch, {6}, {0});
  batch.set_indices("tokens", std::vector<std::int32_t>{9, 2, 9, 4, 2, 9});
  EXPECT_THAT(host(batch.integers("tokens")), ElementsAre(9, 2, 9, 4, 2, 9));
  const IndexGroups groups = batch.groups("tokens");
  EXPECT_THAT(host(groups.values), ElementsAre(2, 4, 9));
  EXPECT_THAT(host(groups.starts), ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(host(groups.rows), ElementsAre(1, 4, 3, 0, 2, 5));
  EXPECT_EQ(batch.distinct("tokens"), 3u);
  EXPECT_EQ(batch.distinct("segments"), 0u);
  EXPECT_THAT(error_of([&] {
                batch.set_indices("segments", std::vector<std::int32_t>{0, 1, 0, -1, 0, 0});
              }),
              HasSubstr("batch: \"segments\" has the index -1; indices begin at 0"));
}

TEST(Batch, AnotherBatchReplacesTheOneBefore) {
  Batch batch;
  begin(batch, {4, 4}, {0, 1});
  batch.set("labels", std::vector<std::int32_t>{1, 2});
  batch.set("weights", std::vector<float>{0.5f, 1.5f});
  batch.set("pixels", std::vector<std::uint8_t>{0, 127, 255});
  EXPECT_THAT(host(batch.bytes("pixels")), ElementsAre(0, 127, 255));
  EXPECT_TRUE(batch.has("pixels") && batch.has("labels") && batch.has("weights"));
  batch.set_indices("tokens", std::vector<std::int32_t>{1, 1, 1, 1, 2, 2, 2, 2});
  begin(batch, {1}, {3});
  EXPECT_FALSE(batch.has("pixels") || batch.has("labels") || batch.has("weights"));
  EXPECT_THAT(host(batch.positions()), ElementsAre(0));
  EXPECT_EQ(batch.shape().longest, 1u);
  EXPECT_THROW(batch.integers("labels"), std::invalid_argument);
  EXPECT_THROW(batch.floats("weights"), std::invalid_argument);
  EXPECT_THROW(batch.groups("tokens"), std::invalid_argument);
  batch.set("weights", std::vector<float>{2.5f});
  batch.set_indices("tokens", std::vector<std::int32_t>{8});
  EXPECT_THAT(host(batch.floats("weights")), ElementsAre(2.5f));
  EXPECT_THAT(host(batch.groups("tokens").values), ElementsAre(8));
}

TEST(Batch, AllocatesNothingForBatchesThatAreNoLarger) {
  Batch batch;
  const auto fill = [&](std::size_t rows) {
    begin(batch, {rows}, {0});
    batch.group_positions();
    std::vector<std::int32_t> tokens(rows);
    for (std::size_t i = 0; i < rows; ++i) tokens[i] = static_cast<std::int32_t>(i * i % 13);
    batch.set_indices("tokens", tokens);
    batch.set("weights", std::vector<float>(rows, 1.0f));
  };
  for (int turn = 0; turn < 2; ++turn) fill(100);  // on a device, batches alternate between two buffers
  const tests::KokkosRecorder recorder;
  for (const std::size_t rows : {99u, 3u, 100u}) fill(rows);
  EXPECT_TRUE(recorder.allocations().empty()) << recorder.allocations().front().label;
}

TEST(Batch, ErrorsNameTheArrayAndWhatThereIs) {
  Batch batch;
  EXPECT_THAT(error_of([&] { begin(batch, {1, 2}, {0}); }), HasSubstr("batch: 2 lengths for 1 samples"));
  EXPECT_THAT(error_of([&] { begin(batch, {}, {}); }), HasSubstr("batch: 0 lengths for 0 samples"));
  const std::vector<std::size_t> lengths{1, 2}, first{0};
  const std::vector<std::uint32_t> ids{0, 1};
  EXPECT_THAT(error_of([&] { batch.reset(lengths, ids, first); }), HasSubstr("batch: 1 first positions for 2 samples"));
  begin(batch, {1}, {0});
  batch.set("labels", std::vector<std::int32_t>{1});
  batch.set("answers", std::vector<std::int32_t>{1});
  EXPECT_THAT(error_of([&] { batch.integers("tokens"); }),
              HasSubstr("batch: no integer array \"tokens\"; there are: answers, labels"));
  EXPECT_THAT(error_of([&] { batch.floats("labels"); }), HasSubstr("batch: no float array \"labels\"; there are: "));
  EXPECT_THAT(error_of([&] { batch.groups("labels"); }), HasSubstr("batch: \"labels\" was not set as indices"));
}

}  // namespace
}  // namespace mylos
