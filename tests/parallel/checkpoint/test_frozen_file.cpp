// Checkpoints of a table with frozen tensors. test_checkpoint_ranks.cpp has several ranks.

#include "parallel/checkpoint/frozen_file.hpp"

#include "core/base/files/hdf5_source.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_format.hpp"
#include "parallel/checkpoint/whole_checkpoints.hpp"
#include "tests/parallel/checkpoint/saved_arrays.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using tests::error_of;
using tests::read_file;
using tests::SavedArrays;
using tests::Spread;
using tests::write_file;

class FrozenValues : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(checkpoints_); }

  /// Saves a checkpoint as a run does, whose frozen values stand in `frozen`. Frozen values do not depend on the step.
  SaveReport save(std::size_t step, FrozenFile& frozen, std::size_t keep = 2, const std::function<void()>& check = {}) {
    return save_to(checkpoints_, step, &frozen, keep, check);
  }
  SaveReport save_to(const fs::path& directory, std::size_t step, FrozenFile* frozen, std::size_t keep = 2,
                     const std::function<void()>& check = {}) {
    SavedArrays saved(table_, Spread::replicated, 0, 1);
    saved.fill(7);
    if (frozen != nullptr) saved.freeze_in(*frozen);
    return save_checkpoint(*world_, directory, step, saved.arrays(), tests::saved_record(step), keep, {}, check);
  }
  /// Returns the error of loading a file, or "" if all values are as saved.
  std::string load_error(const fs::path& file, FrozenFile& frozen) {
    SavedArrays loaded(table_, Spread::replicated, 0, 1);
    loaded.freeze_in(frozen);
    try {
      read_checkpoint_record(*world_, file);
      load_checkpoint(*world_, file, loaded.arrays());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return loaded.differing(7) == 0 ? "" : "other values";
  }
  std::string load_error(const fs::path& file) {
    FrozenFile frozen;
    return load_error(file, frozen);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(checkpoints_)) found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  fs::path at(const std::string& name) const { return checkpoints_ / name; }

  tests::TemporaryDirectory directory_;
  fs::path checkpoints_ = directory_ / "checkpoints";
  std::unique_ptr<Communicator> world_ = make_self_communicator();
  ParameterTable table_ = tests::frozen_table();
  /// Elements of all frozen tensors; of all values of a checkpoint: parameters, two slots of the trained ones, state.
  std::size_t frozen_ = table_.frozen_size(), all_ = table_.size() + 2 * (table_.size() - frozen_) + 19;
};

TEST_F(FrozenValues, StandOnceForAllCheckpoints) {
  FrozenFile frozen;
  EXPECT_EQ(save(1, frozen).bytes, all_ * sizeof(float));
  const std::string once = read_file(at("frozen-000001.h5"));
  for (const std::size_t step : {2, 3}) EXPECT_EQ(save(step, frozen).bytes, (all_ - frozen_) * sizeof(float));
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5", "latest", "step-000002.h5", "step-000003.h5"));
  EXPECT_TRUE(read_file(at("frozen-000001.h5")) == once);
  EXPECT_GT(once.size(), frozen_ * sizeof(float));
  EXPECT_LT(fs::file_size(at("step-000003.h5")), std::size_t{100} << 10) << "bytes for 900 values";
  for (const CheckpointDataset& dataset : read_own_index(at("step-000003.h5")).datasets) {
    EXPECT_THAT(dataset.name, ::testing::Not(AnyOf(StartsWith("/model/embeddings"), HasSubstr("layer.bias"))));
  }
  EXPECT_EQ(load_error(at("step-000003.h5")), "");
  EXPECT_EQ(verify_checkpoint(at("step-000003.h5")), all_ * sizeof(float));
  const CheckpointIndex index = read_checkpoint_index(at("step-000003.h5"));
  ASSERT_NE(index.find("/model/embeddings.weight"), nullptr);
  EXPECT_EQ(index.find("/model/embeddings.weight")->file->path(), at("frozen-000001.h5"));
}

/// The layout and the record of a file. Its bytes also have the time.
std::string contents_of(const fs::path& file) {
  const CheckpointIndex index = read_own_index(file);
  std::string text = fmt::format("{} bytes, {:08x}", fs::file_size(file), index.record.checksum());
  for (const CheckpointDataset& dataset : index.datasets) {
    text += fmt::format("\n{} at {}:", dataset.name, dataset.offset);
    for (const ChecksumRange& range : dataset.ranges) text += fmt::format(" {:08x}", range.crc32c);
  }
  return text;
}

TEST_F(FrozenValues, ChangeNothingInACheckpointWithoutThem) {
  table_ = tests::saved_table();
  FrozenFile frozen;
  const std::string with = contents_of(save(1, frozen).file);
  EXPECT_EQ(contents_of(save_to(checkpoints_, 1, nullptr).file), with);
  EXPECT_THAT(names(), ElementsAre("latest", "step-000001.h5"));
}

/// Those of a model that is adapted are where the model is. A checkpoint of all of it has other tensors.
TEST_F(FrozenValues, BesideAdaptersStandInNoFile) {
  FrozenFile frozen;
  save(1, frozen);
  fs::rename(at("step-000001.h5"), at("whole.h5"));
  table_ = tests::adapted_table();
  EXPECT_EQ(save(2, frozen).bytes, (3 * (table_.size() - table_.frozen_size()) + 19) * sizeof(float));
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5", "latest", "step-000002.h5", "whole.h5"));
  std::vector<std::string> saved;
  for (const CheckpointDataset& dataset : read_checkpoint_index(at("step-000002.h5")).datasets) {
    if (dataset.name.starts_with("/model/")) saved.push_back(dataset.name);
  }
  EXPECT_THAT(saved, UnorderedElementsAre("/model/embeddings.lora_A", "/model/layer.lora_A"));
  EXPECT_EQ(load_error(at("step-000002.h5")), "");
  EXPECT_THAT(load_error(at("whole.h5")), HasSubstr("embeddings.lora_A"));
  table_ = tests::saved_table();
  EXPECT_THAT(load_error(at("step-000002.h5")), HasSubstr("embeddings.weight"));
}

TEST_F(FrozenValues, ServeAResumedRunAndAreCopiedForAnother) {
  FrozenFile first, resumed;
  save(1, first);
  EXPECT_EQ(load_error(at("step-000001.h5"), resumed), "");
  save(2, resumed);
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5", "latest", "step-000001.h5", "step-000002.h5"));
  const fs::path other = directory_ / "other";
  fs::create_directory(other);
  save_to(other, 3, &resumed);
  fs::remove_all(checkpoints_);
  EXPECT_EQ(load_error(other / "step-000003.h5"), "");
  EXPECT_TRUE(fs::exists(other / "frozen-000003.h5"));
}

TEST_F(FrozenValues, AreReadFromCheckpointsThatHoldThemselves) {
  save_to(checkpoints_, 1, nullptr);
  EXPECT_THAT(names(), ElementsAre("latest", "step-000001.h5"));
  FrozenFile frozen{.name = "frozen-000009.h5"};
  EXPECT_EQ(load_error(at("step-000001.h5"), frozen), "");
  EXPECT_EQ(frozen.name, "");
  save(2, frozen);
  EXPECT_THAT(names(), ElementsAre("frozen-000002.h5", "latest", "step-000001.h5", "step-000002.h5"));
  EXPECT_EQ(load_error(at("step-000001.h5")), "");
  EXPECT_EQ(load_error(at("step-000002.h5")), "");
}

TEST_F(FrozenValues, AreMissedByTheirName) {
  FrozenFile frozen;
  save(1, frozen);
  fs::remove(at("frozen-000001.h5"));
  for (const std::string& error :
       {load_error(at("step-000001.h5")), error_of([&] { verify_checkpoint(at("step-000001.h5")); })}) {
    EXPECT_EQ(error, at("step-000001.h5").string() + ": the file of its frozen tensors: cannot read " +
                         at("frozen-000001.h5").string() +
                         ": No such file or directory; restore frozen-000001.h5 from a copy, or from the "
                         "directory in which the checkpoint was written");
  }
  forget_whole(at("step-000001.h5"));
  EXPECT_FALSE(has_whole_structure(at("step-000001.h5")));
  EXPECT_FALSE(is_whole(at("step-000001.h5")));
}

TEST_F(FrozenValues, AreRefusedIfTheyAreOthersOrDamaged) {
  FrozenFile frozen;
  save(1, frozen);
  const std::string right = read_file(at("frozen-000001.h5"));
  const auto copy = "; restore frozen-000001.h5 from a copy, or from the directory in which the checkpoint was written";
  // Another file of the same tensors.
  const fs::path other = directory_ / "other";
  fs::create_directory(other);
  SavedArrays saved(table_, Spread::replicated, 0, 1);
  FrozenFile others;
  saved.freeze_in(others);
  saved.fill(8);
  save_checkpoint(*world_, other, 1, saved.arrays(), {}, 1);
  fs::copy_file(other / "frozen-000001.h5", at("frozen-000001.h5"), fs::copy_options::overwrite_existing);
  EXPECT_THAT(load_error(at("step-000001.h5")),
              AllOf(StartsWith(at("step-000001.h5").string() + ": the file of its frozen tensors: "),
                    ContainsRegex("frozen-000001.h5: CRC32C of its tables of checksums is [0-9a-f]{8}, not "
                                  "[0-9a-f]{8}: it is another file"),
                    EndsWith(copy)));
  // Cut short, and no HDF5.
  for (const std::string& damaged : {right.substr(0, right.size() / 2), std::string("none")}) {
    write_file(at("frozen-000001.h5"), damaged);
    EXPECT_THAT(load_error(at("step-000001.h5")),
                AllOf(ContainsRegex("frozen-000001.h5(: cannot open it| is not an HDF5 file)"), EndsWith(copy)));
  }
  // A flipped bit in a value.
  std::string flipped = right;
  write_file(at("frozen-000001.h5"), right);
  flipped[read_checkpoint_index(at("step-000001.h5")).find("/model/embeddings.bias")->offset] ^= 1;
  write_file(at("frozen-000001.h5"), flipped);
  EXPECT_THAT(load_error(at("step-000001.h5")),
              AllOf(ContainsRegex("frozen-000001.h5: /model/embeddings.bias, elements 0 to 7: CRC32C is .* the file is "
                                  "damaged; restore "),
                    EndsWith(copy)));
  write_file(at("frozen-000001.h5"), right);
  EXPECT_EQ(load_error(at("step-000001.h5")), "");
}

TEST_F(FrozenValues, AreRefusedIfTheCheckpointHoldsThemToo) {
  FrozenFile frozen;
  save(1, frozen);
  CheckpointRecord record("F");
  record_frozen(record, frozen);
  SavedArrays saved(table_, Spread::replicated, 0, 1);
  save_checkpoint(*world_, checkpoints_, 2, saved.arrays(), record, 2);
  EXPECT_THAT(
      load_error(at("step-000002.h5")),
      StartsWith(at("step-000002.h5").string() +
                 ": /model/embeddings.weight stands in it and in its file of frozen tensors, frozen-000001.h5"));
}

TEST_F(FrozenValues, AreInNoOtherFolder) {
  CheckpointRecord record("F");
  for (const char* name : {"../frozen-000001.h5", "/etc/passwd", "frozen-1.h5/x", "step-000001.h5", ""}) {
    record_frozen(record, {name, 1});
    EXPECT_EQ(
        error_of([&] { recorded_frozen(record, "F"); }),
        std::string("F: /run/frozen_file is ") + name + ", not a file of frozen tensors such as frozen-000001.h5");
  }
}

TEST_F(FrozenValues, StayWhileACheckpointNamesThem) {
  FrozenFile first, second;
  save(1, first);
  save(2, second);  // of a process that knows of no file
  EXPECT_THAT(names(),
              ElementsAre("frozen-000001.h5", "frozen-000002.h5", "latest", "step-000001.h5", "step-000002.h5"));
  prepare_checkpoints(*world_, checkpoints_, {1}, 2);
  EXPECT_EQ(load_error(at("step-000001.h5")), "");
  save(3, second);
  EXPECT_THAT(names(), ElementsAre("frozen-000002.h5", "latest", "step-000002.h5", "step-000003.h5"));
  write_file(at("step-000003.h5"), "damaged");  // could name any file
  write_file(at("frozen-000009.h5"), "no one's");
  save(4, first);
  EXPECT_THAT(names(), ElementsAre("frozen-000002.h5", "frozen-000004.h5", "frozen-000009.h5", "latest",
                                   "step-000002.h5", "step-000003.h5", "step-000004.h5"));
  save(5, first, 1);
  EXPECT_THAT(names(), ElementsAre("frozen-000004.h5", "latest", "step-000005.h5"));
  withdraw_checkpoint(checkpoints_, 5);
  EXPECT_THAT(names(), ElementsAre("latest"));
}

/// A user keeps a checkpoint under another name, or reaches one by a link.
TEST_F(FrozenValues, StayForCopiesAndLinks) {
  FrozenFile first, second;
  save(1, first);
  fs::copy_file(at("step-000001.h5"), at("good.h5"));
  save(2, second, 1);
  save(3, second, 1);
  prepare_checkpoints(*world_, checkpoints_, {1}, 1);
  EXPECT_EQ(load_error(at("good.h5")), "");
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5", "frozen-000002.h5", "good.h5", "latest", "step-000003.h5"));
  withdraw_checkpoint(checkpoints_, 3);
  EXPECT_EQ(load_error(at("good.h5")), "");
  fs::create_symlink(at("good.h5"), directory_ / "start.h5");
  EXPECT_EQ(load_error(directory_ / "start.h5"), "");
}

TEST_F(FrozenValues, OfALostFileLeaveTheCheckpointsThatNeedNone) {
  save_to(checkpoints_, 1, nullptr);
  FrozenFile frozen;
  for (const std::size_t step : {2, 3}) save(step, frozen, 3);
  fs::remove(at(frozen.name));
  save(4, frozen, 2);
  EXPECT_EQ(load_error(at("step-000001.h5")), "") << "the only intact one beside the newest";
}

TEST_F(FrozenValues, AreRefusedByEarlierVersions) {
  FrozenFile frozen;
  save(1, frozen);
  save_to(checkpoints_, 2, nullptr);
  const auto version = [&](const char* name) {
    return read_hdf5_number<std::uint64_t>(Hdf5Source(at(name)).id(), version_attribute, name);
  };
  EXPECT_EQ(version("step-000001.h5"), 2u);
  EXPECT_EQ(version("step-000002.h5"), 1u);
}

TEST_F(FrozenValues, AreWrittenAgainIfTheirFileIsLost) {
  FrozenFile frozen;
  save(1, frozen);
  const std::uint32_t checksum = frozen.checksum;
  fs::remove(at("frozen-000001.h5"));
  save(2, frozen, 1);
  EXPECT_EQ(load_error(at("step-000002.h5")), "");
  write_file(at("frozen-000002.h5"), "of another program");
  save(2, frozen, 1);
  EXPECT_EQ(load_error(at("step-000002.h5")), "");
  EXPECT_THAT(names(), ElementsAre("frozen-000003.h5", "latest", "step-000002.h5"));
  EXPECT_EQ(identify_frozen(at("frozen-000003.h5")).checksum, checksum);
}

TEST_F(FrozenValues, AKillBeforeTheCheckpointLeavesAWholeFileThatTheNextStartRemoves) {
  const pid_t child = ::fork();
  if (child == 0) {
    [this]() noexcept {
      FrozenFile frozen;
      save(1, frozen, 1, [published = 0]() mutable {
        if (++published == 2) ::_exit(0);
      });
    }();
    ::_exit(1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5", ContainsRegex("^step-000001.h5.[0-9a-f]+.tmp$")));
  EXPECT_EQ(verify_checkpoint(at("frozen-000001.h5")), frozen_ * sizeof(float));
  EXPECT_EQ(find_checkpoint(*world_, checkpoints_), "");
  write_file(unfinished_name(at("frozen-000002.h5")), "half");
  prepare_checkpoints(*world_, checkpoints_, {1}, 1);
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(FrozenValues, NeedRoom) {
  FrozenFile frozen;
  {
    const tests::FileSizeLimit limited(100'000);
    EXPECT_THAT(error_of([&] { save(1, frozen); }),
                ContainsRegex("/frozen-000001.h5[.][0-9a-f]+[.]tmp: File too large"));
  }
  EXPECT_THAT(names(), ElementsAre());
  // The check before the checkpoint's name fails, as a full disk would. The file serves the next save.
  const auto fail_second = [count = 0]() mutable {
    if (++count == 2) throw std::runtime_error("full");
  };
  EXPECT_EQ(error_of([&] { save(1, frozen, 2, fail_second); }), "full");
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5"));
  EXPECT_EQ(save(2, frozen).bytes, (all_ - frozen_) * sizeof(float));
  EXPECT_THAT(names(), ElementsAre("frozen-000001.h5", "latest", "step-000002.h5"));
}

TEST_F(FrozenValues, CountOnceInTheNeededSpace) {
  std::size_t each = std::size_t{1} << 53;
  const auto error = [&] {
    return error_of([&] { check_checkpoint_space(checkpoints_, {.each = each, .frozen = std::size_t{1} << 55}, 2); });
  };
  EXPECT_THAT(error(), HasSubstr("the 2 checkpoints that are kept, the frozen tensors and the one being written need "
                                 "56.00 PiB more"));
  each = 1 << 20;
  FrozenFile frozen;
  save(1, frozen);
  EXPECT_EQ(error(), "(nothing was thrown)") << "they are there";
  SavedArrays saved(table_, Spread::replicated, 0, 1);
  EXPECT_EQ(checkpoint_bytes(saved.arrays()).each, all_ * sizeof(float));
  saved.freeze_in(frozen);
  EXPECT_EQ(checkpoint_bytes(saved.arrays()).each, (all_ - frozen_) * sizeof(float));
  EXPECT_EQ(checkpoint_bytes(saved.arrays()).frozen, frozen_ * sizeof(float));
}

}  // namespace
}  // namespace mylos::parallel
