#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>
#include <random>

#include "core/base/files/file_reader.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "data/images/image_file.hpp"
#include "data/images/image_set.hpp"
#include "data/images/prepare_images.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/support/hdf5_changes.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Class directories of two good images and a damaged one, and the file prepared from them.
class ImageFileHdf5 : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [file, recorded] : {std::pair{"ant/a.png", "png palette"}, {"bee/c.jpg", "jpeg grey"}}) {
      tests::write_file(directory_ / "set" / file, tests::recorded_image_file("decoded.jsonl", recorded));
    }
    tests::write_file(directory_ / "set/bee/b.jpg", "no picture");
    source_ = open_images(FileReader(), (directory_ / "set").string(), ImagePart::training);
    counts_ = prepare_images(*source_, path_, {.threads = 2});
  }

  std::string message(const FileReader& files = FileReader()) const {
    return tests::error_of_file(path_, [&] {
      const auto set = open_image_file(files, path_);
      for (std::size_t i = 0; i < set->size(); ++i) set->encoded(i);
    });
  }
  std::string message_after(const std::function<void(hid_t file)>& change) {
    prepare_images(*source_, path_, {});
    tests::change_hdf5(path_, change);
    return message();
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "images.h5";
  std::unique_ptr<ImageSet> source_;
  PrepareCounts counts_;
};

TEST_F(ImageFileHdf5, WhatIsPreparedReadsBack) {
  EXPECT_EQ(counts_.images, 2u);
  EXPECT_EQ(counts_.left_out, 1u);
  EXPECT_EQ(counts_.first_left_out, (directory_ / "set/bee/b.jpg").string() + ": is neither JPEG nor PNG");
  EXPECT_TRUE(is_image_file(path_));
  const auto set = open_images(FileReader(), path_.string(), ImagePart::training);
  EXPECT_EQ(set->label_names(), source_->label_names());
  EXPECT_THAT(set->labels(), ::testing::ElementsAre(0, 1));
  EXPECT_FALSE(set->shape());
  EXPECT_EQ(set->name(1), "bee/c.jpg");
  EXPECT_EQ(set->location(1), path_.string() + ", image 1 (bee/c.jpg)");
  EXPECT_EQ(set->encoded(0), source_->encoded(0));
  EXPECT_EQ(set->decode(1).pixels, source_->decode(2).pixels);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 2) << "no temporary is left";
}

/// As on the ranks that do not read the index themselves. They read the images.
TEST_F(ImageFileHdf5, TheIndexMayBeACopy) {
  FileCopies copies;
  ByteWriter arrays;
  open_image_file(FileReader(copies, 0), path_)->write_arrays(arrays);
  std::string file = tests::read_file(path_);
  file.replace(0, 8, "no index");
  tests::write_file(path_, file);
  EXPECT_EQ(message(), "F is not an HDF5 file");
  const auto set = open_image_file(FileReader(copies), path_);
  const std::string bytes = arrays.take();
  ByteReader reader(bytes);
  set->read_arrays(reader);
  EXPECT_EQ(set->label_names(), source_->label_names());
  EXPECT_THAT(set->labels(), ::testing::ElementsAre(0, 1));
  EXPECT_EQ(set->name(1), "bee/c.jpg");
  EXPECT_EQ(set->encoded(0), source_->encoded(0));
  char& byte = file[file.find(source_->encoded(0))];
  byte = static_cast<char>(byte ^ 1);
  tests::write_file(path_, file);
  EXPECT_THAT(tests::error_of([&] { set->encoded(0); }), HasSubstr("the file is damaged"));
  tests::write_file(path_, file + "more");
  EXPECT_THAT(message(FileReader(copies)), HasSubstr("where its index was read: all ranks need the same file"));
}

TEST_F(ImageFileHdf5, ImagesOfOneShapeReadBack) {
  const auto drawn = open_images(FileReader(), "synthetic:50x6x7", ImagePart::training, {.synthetic_labels = 3});
  EXPECT_EQ(prepare_images(*drawn, path_, {}).images, 50u);
  const auto set = open_image_file(FileReader(), path_);
  EXPECT_EQ(set->labels(), drawn->labels());
  EXPECT_EQ(set->shape(), drawn->shape());
  EXPECT_EQ(set->name(3), "");
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(set->encoded(i), drawn->encoded(i));
}

TEST_F(ImageFileHdf5, LabelsThatLoseAllImagesAreListed) {
  EXPECT_THAT(counts_.emptied_labels, IsEmpty()) << "a picture of each label is readable";
  tests::write_file(directory_ / "set/bee/c.jpg", "no picture");
  EXPECT_THAT(prepare_images(*source_, path_, {}).emptied_labels, ElementsAre("bee"));
  EXPECT_THAT(open_image_file(FileReader(), path_)->label_names(), ElementsAre("ant", "bee"));
  const auto first = first_images(open_images(FileReader(), (directory_ / "set").string(), ImagePart::training), 1);
  EXPECT_THAT(prepare_images(*first, path_, {}).emptied_labels, IsEmpty()) << "the set has no image of the others";
}

TEST_F(ImageFileHdf5, StrictEndsAtADamagedPicture) {
  EXPECT_EQ(tests::error_of([&] { prepare_images(*source_, path_, {.strict = true, .threads = 2}); }),
            (directory_ / "set/bee/b.jpg").string() + ": is neither JPEG nor PNG; without `strict` it is left out");
}

TEST_F(ImageFileHdf5, WhereNothingCanBeReadNothingIsWritten) {
  std::filesystem::remove(path_);
  for (const char* file : {"ant/a.png", "bee/c.jpg"}) tests::write_file(directory_ / "set" / file, "");
  EXPECT_EQ(tests::error_of([&] { prepare_images(*source_, path_, {}); }),
            "no image can be read; the first: " + (directory_ / "set/ant/a.png").string() + ": is empty");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ImageFileHdf5, APictureThatChangesMeanwhileIsNamed) {
  EXPECT_EQ(tests::error_of([&] {
              write_image_file(path_, *source_, {{0, 5, 0}}, 0);
            }),
            (directory_ / "set/ant/a.png").string() + " has changed while it was prepared");
  EXPECT_EQ(open_image_file(FileReader(), path_)->size(), 2u) << "the old file stays";
}

TEST_F(ImageFileHdf5, OtherFilesAreNamedForWhatTheyAre) {
  tests::write_file(path_, "no HDF5");
  EXPECT_EQ(message(), "F is not an HDF5 file");
  EXPECT_FALSE(is_image_file(path_));
  for (const char* format : {"mylos samples", "mylos images"}) {
    Hdf5Writer other("other");
    other.set_attribute("format", format);
    other.set_attribute("format_version", 9);
    tests::write_file(path_, other.finish());
    const bool is_ours = format == std::string("mylos images");
    EXPECT_EQ(is_image_file(path_), is_ours);
    EXPECT_EQ(message(),
              is_ours ? "F has format version 9, this program reads 1; " + prepare_again(path_.string())
                      : "F: `mylos prepare` did not write it for such a model; " + prepare_command() + " writes one");
  }
}

TEST_F(ImageFileHdf5, AFileMayHaveAnyName) {
  const auto other = directory_ / "images.prepared", damaged = directory_ / "damaged.hdf5";
  std::filesystem::copy_file(path_, other);
  EXPECT_EQ(open_images(FileReader(), other.string(), ImagePart::training)->size(), 2u);
  tests::write_file(damaged, "no HDF5");
  EXPECT_EQ(tests::error_of_file(damaged, [&] { open_images(FileReader(), damaged.string(), ImagePart::training); }),
            "F is not an HDF5 file");
}

TEST_F(ImageFileHdf5, NoFlippedByteGoesUnnoticed) {
  const auto whole = tests::read_file(path_);
  std::mt19937 random(5);
  for (std::size_t offset = 0; offset < whole.size(); offset += 1 + random() % 24) {
    auto bytes = whole;
    bytes[offset] = static_cast<char>(bytes[offset] ^ (1 << random() % 8));
    tests::write_file(path_, bytes);
    try {
      const auto set = open_image_file(FileReader(), path_);
      ASSERT_EQ(set->size(), 2u);
      EXPECT_EQ(set->encoded(0), source_->encoded(0)) << offset;
      EXPECT_EQ(set->encoded(1), source_->encoded(2)) << offset;
      EXPECT_THAT(set->labels(), ::testing::ElementsAre(0, 1)) << offset;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

/// Replaces an array by other values, with a matching checksum.
template <class Element>
void put_array(hid_t file, const char* path, const std::vector<Element>& values) {
  Hdf5Writer writer("other");
  writer.write<Element>(path, values);
  tests::TemporaryDirectory directory;
  tests::write_file(directory / "other.h5", writer.finish());
  const Hdf5Id other(open_hdf5_file(directory / "other.h5"), H5Fclose);
  H5Ldelete(file, path, H5P_DEFAULT);
  ASSERT_GE(H5Ocopy(other.get(), path, file, path, H5P_DEFAULT, H5P_DEFAULT), 0);
}

TEST_F(ImageFileHdf5, ContentsThatContradictEachOtherAreNamed) {
  const std::uint64_t bytes = source_->encoded(0).size() + source_->encoded(2).size();
  const auto divides = "F: /starts does not divide " + std::to_string(bytes) + " bytes";
  const auto with = [&]<class Element>(const char* path, std::vector<Element> values) {
    return message_after([&](hid_t file) { put_array<Element>(file, path, values); });
  };
  EXPECT_EQ(with("/starts", std::vector<std::uint64_t>{0, bytes + 1, bytes}), divides);
  EXPECT_EQ(with("/starts", std::vector<std::uint64_t>{0, 5, bytes + 1}), divides);
  EXPECT_EQ(with("/starts", std::vector<std::uint64_t>{}), divides);
  EXPECT_EQ(with("/starts", std::vector<std::uint64_t>{0, bytes}), "F: the arrays of the images differ in length");
  EXPECT_EQ(with("/checksums", std::vector<std::uint32_t>{0}), "F: the arrays of the images differ in length");
  EXPECT_EQ(with("/names", std::vector<std::uint8_t>{'a', 0}), "F: the arrays of the images differ in length");
  EXPECT_EQ(with("/labels", std::vector<std::int32_t>{0, 2}), "F, image 1 (bee/c.jpg): label 2 of 2 labels");
  EXPECT_EQ(with("/labels", std::vector<std::int32_t>{-1, 1}), "F, image 0 (ant/a.png): label -1 of 2 labels");
  EXPECT_EQ(with("/labels", std::vector<std::int32_t>{}), "F: it contains no images");
  EXPECT_THAT(with("/checksums", std::vector<std::uint32_t>{0, 0}),
              ::testing::MatchesRegex("F, image 0 .ant/a.png. has CRC32C ........, not 00000000: the file is damaged; "
                                      "make it again with `mylos prepare .*` and this run's options"));
}

TEST_F(ImageFileHdf5, ShapesThatLieAreNamed) {
  const auto with = [&](std::int64_t height, std::int64_t width, std::int64_t channels) {
    return message_after([&](hid_t file) {
      write_hdf5_attribute(file, "height", height, "F");
      write_hdf5_attribute(file, "width", width, "F");
      write_hdf5_attribute(file, "channels", channels, "F");
    });
  };
  EXPECT_EQ(with(2, -3, 1), "F: images have a shape of 2 x -3 x 1");
  EXPECT_EQ(with(2, 3, 2), "F: images have a shape of 2 x 3 x 2");
  EXPECT_EQ(with(std::int64_t{1} << 40, std::int64_t{1} << 40, 3),
            "F: images have a shape of 1099511627776 x 1099511627776 x 3");
  EXPECT_THAT(with(2, 3, 1), HasSubstr("bytes for 6 pixels and channels"));
}

}  // namespace
}  // namespace mylos::data
