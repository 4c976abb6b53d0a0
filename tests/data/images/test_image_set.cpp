#include "data/images/image_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file_reader.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/data/images/small_images.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::write_file;

class ImageSetTest : public ::testing::Test {
 protected:
  std::unique_ptr<ImageSet> open(ImagePart part = ImagePart::training) const { return open(FileReader(), part); }
  std::unique_ptr<ImageSet> open(const FileReader& files, ImagePart part = ImagePart::training) const {
    return open_images(files, directory_.path().string(), part);
  }
  std::string error(ImagePart part = ImagePart::training) const {
    return tests::error_of_file(directory_.path(), [&] { open(part); });
  }
  void put(const std::string& name, const std::string& bytes) const { write_file(directory_ / name, bytes); }

  tests::TemporaryDirectory directory_;
};

using CifarImages = ImageSetTest;
using IdxImages = ImageSetTest;
using ClassDirectories = ImageSetTest;

/// Returns a record of CIFAR's binary version, with uniform red, green and blue values.
std::string cifar_record(const std::string& labels, char red, char green, char blue) {
  return labels + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

TEST_F(CifarImages, BinaryFilesOfEachPartAreRead) {
  put("data_batch_1.bin", cifar_record("\x03", 1, 2, 3) + cifar_record("\x09", 4, 5, 6));
  put("data_batch_2.bin", cifar_record("\x01", 7, 8, 9));
  put("test_batch.bin", cifar_record("\x02", 10, 11, 12));
  put("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const auto training = open();
  EXPECT_THAT(training->labels(), ElementsAre(3, 9, 1));
  EXPECT_EQ(training->shape(), (ImageShape{32, 32, 3}));
  EXPECT_EQ(training->label_names().at(3), "d");
  const Image image = training->decode(2);
  EXPECT_EQ(image.pixels.size(), 3072u);
  EXPECT_THAT(std::vector(image.pixels.end() - 3, image.pixels.end()), ElementsAre(7, 8, 9));
  EXPECT_THAT(training->location(2), HasSubstr("data_batch_2.bin, image 0"));
  EXPECT_EQ(training->name(2), "");
  EXPECT_EQ(training->decode(0, [](auto, auto) { return Region{1, 2, 3, 4}; }).shape, (ImageShape{3, 4, 3}));
  EXPECT_THAT(open(ImagePart::test)->labels(), ElementsAre(2));
}

/// As on the ranks that do not read the files themselves.
class CopiedImages : public ImageSetTest {
 protected:
  /// Opens the training images again after the content of `files` has gone.
  std::unique_ptr<ImageSet> open_copies(const std::vector<std::string>& files) const {
    FileCopies copies;
    ByteWriter arrays;
    open(FileReader(copies, 0))->write_arrays(arrays);
    for (const std::string& file : files) put(file, "");
    std::unique_ptr<ImageSet> set = open(FileReader(copies));
    const std::string bytes = arrays.take();
    ByteReader reader(bytes);
    set->read_arrays(reader);
    return set;
  }
};

TEST_F(CopiedImages, AreThoseOfCifarsFiles) {
  put("data_batch_1.bin", cifar_record("\x03", 1, 2, 3) + cifar_record("\x09", 4, 5, 6));
  put("data_batch_2.bin", cifar_record("\x01", 7, 8, 9));
  const auto set = open_copies({"data_batch_1.bin", "data_batch_2.bin"});
  EXPECT_THAT(set->labels(), ElementsAre(3, 9, 1));
  EXPECT_EQ(set->label_names().size(), 10u);
  EXPECT_THAT(set->location(2), HasSubstr("data_batch_2.bin, image 0"));
  const Image image = set->decode(2);
  EXPECT_EQ(image.shape, (ImageShape{32, 32, 3}));
  EXPECT_THAT(std::vector(image.pixels.end() - 3, image.pixels.end()), ElementsAre(7, 8, 9));
}

TEST_F(CopiedImages, AreThoseOfMnistsFiles) {
  const char* images = "train-images-idx3-ubyte.gz";
  const char* labels = "train-labels-idx1-ubyte.gz";
  put(images, tests::recorded_image_file("gzip.jsonl", "images"));
  put(labels, tests::recorded_image_file("gzip.jsonl", "labels"));
  const auto set = open_copies({images, labels});
  EXPECT_THAT(set->labels(), ElementsAre(7, 9));
  EXPECT_THAT(set->decode(0).pixels, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST_F(CifarImages, FineLabelsAreThoseOfCifar100) {
  put("train.bin", cifar_record("\x05\x32", 1, 2, 3));
  EXPECT_THAT(open()->labels(), ElementsAre(0x32));
  EXPECT_EQ(open()->label_names().size(), 100u);
  EXPECT_EQ(open(ImagePart::test)->size(), 1u) << "a directory with one kind serves both parts";
}

TEST_F(CifarImages, PythonsFilesAreRead) {
  put("data_batch_1", tests::recorded_image_file("pickles.jsonl", "CIFAR-10 of Python 2"));
  put("data_batch_2", tests::recorded_image_file("pickles.jsonl", "CIFAR-10 in protocol 4"));
  put("test_batch", tests::recorded_image_file("pickles.jsonl", "CIFAR-10 in protocol 2"));
  put("batches.meta", tests::recorded_image_file("pickles.jsonl", "names in protocol 2"));
  for (const auto& [part, labels] :
       {std::pair{ImagePart::training, std::vector{6, 9, 6, 9}}, {ImagePart::test, {6, 9}}}) {
    const auto set = open(part);
    EXPECT_EQ(set->labels(), labels);
    EXPECT_EQ(set->label_names().at(9), "class 9");
    const Image image = set->decode(1);
    for (std::size_t i = 0; i < 3072; ++i) {  // interleaved pixels, while the file has separate channels
      ASSERT_EQ(image.pixels[i], (3072 + i % 3 * 1024 + i / 3) * 7 % 251) << i;
    }
  }
}

TEST_F(CifarImages, PythonsCifar100IsRead) {
  put("train", tests::recorded_image_file("pickles.jsonl", "CIFAR-100 in protocol 4"));
  EXPECT_THAT(open()->labels(), ElementsAre(19, 99));
}

TEST_F(CifarImages, WhatIsWrongIsNamed) {
  put("data_batch_1.bin", cifar_record("\x03", 1, 2, 3) + "x");
  EXPECT_EQ(error(), "F/data_batch_1.bin has 3074 bytes, not a multiple of the 3073 bytes of a CIFAR-10 image");
  put("data_batch_1.bin", "");
  EXPECT_EQ(error(), "F/data_batch_1.bin has 0 bytes, not a multiple of the 3073 bytes of a CIFAR-10 image");
  put("data_batch_1.bin", cifar_record("\x03", 1, 2, 3) + cifar_record("\x0a", 1, 2, 3));
  EXPECT_EQ(error(), "F/data_batch_1.bin, image 1: label 10 is outside 0 to 9");
  put("batches.meta.txt", "a\nb\n");
  EXPECT_EQ(error(), "F/batches.meta.txt has 2 names of labels, CIFAR-10 has 10");
}

TEST_F(CifarImages, PicklesThatAreNoBatchesAreNamed) {
  const auto with = [&](const std::string& bytes) {
    put("data_batch_1", bytes);
    return error();
  };
  EXPECT_EQ(with("N."), "F/data_batch_1 has no dictionary with data and labels");
  EXPECT_EQ(with(""), "F/data_batch_1 ends early");
  EXPECT_THAT(with(tests::recorded_image_file("pickles.jsonl", "a set")),
              StartsWith("F/data_batch_1 is a pickle with opcode 0x8f at byte 11, which is not read"));
  EXPECT_EQ(with(tests::recorded_image_file("pickles.jsonl", "CIFAR-100 in protocol 4")),
            "F/data_batch_1 has no dictionary with data and labels");
  std::string other = tests::recorded_image_file("pickles.jsonl", "CIFAR-10 of Python 2");
  other[other.find("K\x06K\x09") + 2] = 'N';
  other.erase(other.find("K\x06N\x09") + 3, 1);
  EXPECT_EQ(with(other), "F/data_batch_1 has no label between 0 and 255 for image 1");
  other.erase(other.find("K\x06N") + 2, 1);
  EXPECT_EQ(with(other), "F/data_batch_1 has 1 labels for an array of shape (2, 3072); expected (labels, 3072)");
  put("data_batch_1", tests::recorded_image_file("pickles.jsonl", "CIFAR-10 of Python 2"));
  put("batches.meta", "N.");
  EXPECT_EQ(error(), "F/batches.meta has no dictionary with label_names");
}

std::string idx_header(unsigned char dimensions, std::initializer_list<unsigned> sizes) {
  std::string bytes{0, 0, 8, static_cast<char>(dimensions)};
  for (const unsigned size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  }
  return bytes;
}

TEST_F(IdxImages, PlainFilesAreRead) {
  put("train-images-idx3-ubyte", idx_header(3, {2, 2, 3}) + "abcdefghijkl");
  put("train-labels-idx1-ubyte", idx_header(1, {2}) + "\x07\x09");
  const auto set = open(ImagePart::test);
  EXPECT_THAT(set->labels(), ElementsAre(7, 9));
  EXPECT_EQ(set->shape(), (ImageShape{2, 3, 1}));
  EXPECT_THAT(set->decode(1).pixels, ElementsAre('g', 'h', 'i', 'j', 'k', 'l'));
}

TEST_F(IdxImages, WhatIsWrongIsNamed) {
  const auto with = [&](const std::string& images, const std::string& labels) {
    put("train-images-idx3-ubyte", images);
    put("train-labels-idx1-ubyte", labels);
    return error();
  };
  const std::string images = idx_header(3, {1, 2, 3}) + "abcdef", labels = idx_header(1, {1}) + "\x07";
  const std::string f = "F/train-images-idx3-ubyte", l = "F/train-labels-idx1-ubyte";
  EXPECT_EQ(with(images, labels), "(nothing was thrown)");
  EXPECT_EQ(with(images.substr(0, 20), labels), f + " ends after 20 bytes; its header promises 22");
  EXPECT_EQ(with(images.substr(0, 7), labels), f + " ends after 7 bytes; its header promises 8");
  EXPECT_EQ(with(images + "g", labels), f + " is longer than the 22 bytes that its header promises");
  EXPECT_EQ(with(images, labels + "g"), l + " is longer than the 9 bytes that its header promises");
  EXPECT_EQ(with(labels, labels), f + " begins with 00000801, an idx file of images begins with 00000803");
  EXPECT_EQ(with(images, images), l + " begins with 00000803, an idx file of labels begins with 00000801");
  EXPECT_EQ(with(images, idx_header(1, {1}) + "\x0b"), f + ", image 0: label 11 is outside 0 to 9");
  EXPECT_THAT(with(images, idx_header(1, {2}) + "\x01\x01"), HasSubstr("idx3-ubyte has 1 images, "));
  EXPECT_EQ(with(idx_header(3, {0, 2, 3}), idx_header(1, {0})), f + " has no images");
  EXPECT_EQ(with(idx_header(3, {1, 0, 3}), labels), f + ": an image has no pixels: 0 x 3");
  EXPECT_EQ(with(idx_header(3, {4000000000, 9, 9}), labels), f + " says that it has 4000000000 images");
  EXPECT_EQ(with(idx_header(3, {99999999, 9999, 9999}), idx_header(1, {99999999})),
            f + " ends after 16 bytes; its header promises 9998000000020015");
  std::filesystem::remove(directory_ / "train-labels-idx1-ubyte");
  EXPECT_EQ(error(), "F has no train-labels-idx1-ubyte[.gz]");
}

TEST_F(IdxImages, CompressedFilesAreRead) {
  put("t10k-images.idx3-ubyte.gz", tests::recorded_image_file("gzip.jsonl", "images"));
  put("t10k-labels-idx1-ubyte.gz", tests::recorded_image_file("gzip.jsonl", "labels"));
  EXPECT_THAT(open()->labels(), ElementsAre(7, 9));
  EXPECT_THAT(open()->decode(0).pixels, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  const auto with = [&](const std::string& bytes) {
    put("t10k-images.idx3-ubyte.gz", bytes);
    return error();
  };
  EXPECT_EQ(with(tests::recorded_image_file("gzip.jsonl", "bomb")),
            "F/t10k-images.idx3-ubyte.gz is longer than the 28 bytes that its header promises");
  EXPECT_EQ(with(tests::recorded_image_file("gzip.jsonl", "wrong sum")),
            "F/t10k-images.idx3-ubyte.gz is damaged (zlib: incorrect data check)");
  const std::string whole = tests::recorded_image_file("gzip.jsonl", "images");
  EXPECT_THAT(with(whole.substr(0, 20)), StartsWith("F/t10k-images.idx3-ubyte.gz ends after "));
  std::string damaged = whole;
  damaged[10] = '\x07';  // behind the header: a kind of block that does not exist
  EXPECT_THAT(with(damaged), HasSubstr(" (zlib: "));
}

TEST_F(ClassDirectories, SortedNamesAreTheLabels) {
  const std::string png = tests::recorded_image_file("decoded.jsonl", "png RGB");
  const std::string jpeg = tests::recorded_image_file("decoded.jsonl", "jpeg progressive");
  put("zebra/1.PNG", png);
  put("ant/b.jpeg", jpeg);
  put("ant/a.png", png);
  put("ant/.hidden", "x");
  put("README.txt", "a file beside the classes");
  const auto set = open();
  EXPECT_THAT(set->label_names(), ElementsAre("ant", "zebra"));
  EXPECT_THAT(set->labels(), ElementsAre(0, 0, 1));
  EXPECT_FALSE(set->shape());
  EXPECT_EQ(set->name(1), "ant/b.jpeg");
  EXPECT_EQ(set->decode(1).shape, (ImageShape{21, 30, 3}));
  EXPECT_EQ(set->encoded(2), png);
}

TEST_F(ClassDirectories, OtherFilesArePassedOverAndCounted) {
  put("ant/a.png", "1");
  put("ant/Thumbs.db", "x");
  put("bee/b.jpg", "2");
  put("bee/desktop.ini", "x");
  const auto set = open();
  EXPECT_EQ(set->size(), 2u);
  EXPECT_EQ(set->passed_over().files, 2u);
  EXPECT_EQ(set->passed_over().first, (directory_ / "ant/Thumbs.db").string());
}

TEST_F(ClassDirectories, AnImageThatChangesBetweenTwoReadsIsNamed) {
  const std::string png = tests::recorded_image_file("decoded.jsonl", "png RGB");
  put("ant/a.png", png);
  const auto set = open();
  set->decode(0);
  put("ant/a.png", png + "x");
  EXPECT_NO_THROW(set->decode(0)) << "without marks";
  set->keep_marks(false);
  set->decode(0);
  put("ant/a.png", png);
  EXPECT_EQ(tests::error_of_file(directory_.path(), [&] { set->decode(0); }),
            "F/ant/a.png has changed since the run first read it; restore it, or start the run over");
}

/// A run that fails at a damaged image can be resumed with the repaired image; one that has skipped it cannot.
TEST_F(ClassDirectories, DamagedImagesAreMarkedWhereTheyAreSkipped) {
  put("ant/a.png", "no picture");
  for (const bool skips : {false, true}) {
    const auto set = open();
    set->keep_marks(skips);
    EXPECT_THROW(set->decode(0), DamagedImage);
    EXPECT_EQ((*set->marks())[0].checksum != 0, skips);
    EXPECT_EQ(set->marks()->damaged().size(), skips ? 1u : 0u);
  }
}

/// As on the ranks that do not list the directories themselves.
TEST_F(ClassDirectories, AreThoseOfTheCopiesInUse) {
  put("ant/a.png", "1");
  put("zebra/a.png", "2");
  FileCopies copies;
  open(FileReader(copies, 0));
  put("bear/a.png", "3");
  put("ant/b.png", "4");
  std::filesystem::remove(directory_ / "zebra/a.png");
  const auto set = open(FileReader(copies));
  EXPECT_THAT(set->label_names(), ElementsAre("ant", "zebra"));
  EXPECT_THAT(set->labels(), ElementsAre(0, 1));
  EXPECT_EQ(set->encoded(0), "1") << "pictures are read as they are needed";
}

TEST_F(ClassDirectories, WhatIsWrongIsNamed) {
  EXPECT_EQ(error(), "F has no class directories, and no files of CIFAR or MNIST by their official names");
  std::filesystem::create_directory(directory_ / "ant");
  EXPECT_EQ(error(), "F/ant: a class directory without files named .jpg, .jpeg or .png");
  put("ant/notes.txt", "a list");
  EXPECT_EQ(error(), "F/ant: a class directory without files named .jpg, .jpeg or .png");
  put("ant/deeper/a.png", "");
  EXPECT_THAT(error(), StartsWith("F/ant/deeper is a directory inside a class directory"));
  std::filesystem::remove_all(directory_ / "ant/deeper");
  put("ant/a.png", "a list");
  EXPECT_EQ(
      tests::error_of_file(directory_.path(), [&] { open()->decode(0); }),
      "F/ant/a.png: is neither JPEG nor PNG; `mylos prepare` leaves damaged pictures out, and `damaged skip` goes "
      "on without them");
  std::filesystem::remove(directory_ / "ant/a.png");
  std::filesystem::create_symlink("nothing", directory_ / "ant/b.png");
  EXPECT_THAT(tests::error_of_file(directory_.path(), [&] { open()->decode(0); }),
              HasSubstr("/ant/b.png is a link to nothing, which does not exist"));
}

TEST_F(ImageSetTest, AFileOfAnotherKindIsToldWhatIsExpected) {
  for (const char* name : {"games.pgn", "data_batch_1.bin", "empty"}) {
    const std::string bytes = name == std::string("empty") ? "" : "[Event \"a game\"]";
    put(name, bytes);
    EXPECT_EQ(tests::error_of([&] { open_images(FileReader(), (directory_ / name).string(), ImagePart::training); }),
              (directory_ / name).string() +
                  " is not a data set of images; expected a directory of class directories, of CIFAR's files or of "
                  "MNIST's files, a file of `mylos prepare` (.h5), or synthetic:COUNTxHxW");
  }
}

TEST(SyntheticImages, AreAFunctionOfTheirIndex) {
  const auto set = open_images(FileReader(), "synthetic:1000x5x7", ImagePart::training, {.synthetic_labels = 10});
  EXPECT_EQ(set->size(), 1000u);
  EXPECT_EQ(set->shape(), (ImageShape{5, 7, 3}));
  EXPECT_EQ(set->decode(3).pixels, set->decode(3).pixels);
  EXPECT_NE(set->decode(3).pixels, set->decode(4).pixels);
  std::vector<int> counts(10);
  for (const auto label : set->labels()) ++counts.at(static_cast<std::size_t>(label));
  EXPECT_THAT(counts, ::testing::Each(::testing::Gt(60)));
}

TEST(SyntheticImages, MalformedOnesAreNamed) {
  const auto error = [](const std::string& data) {
    return tests::error_of([&] { open_images(FileReader(), data, ImagePart::training); });
  };
  for (const char* data : {"synthetic:", "synthetic:8", "synthetic:8x9", "synthetic:8x9x0", "synthetic:8x9x10x3",
                           "synthetic:8x9x10 ", "synthetic:-8x9x10", "synthetic:8x 9x10", "synthetic:08x9x10"}) {
    EXPECT_EQ(error(data), std::string(data) + ": expected synthetic:COUNTxHxW, as synthetic:1000x224x224");
  }
  EXPECT_EQ(
      error("synthetic:8x99999x99999"),
      "synthetic:8x99999x99999: an image says that it has 99999 x 99999 pixels; 178956970 are the most that are read");
  EXPECT_EQ(error("synthetic:9999999999x9x9"), "synthetic:9999999999x9x9: at most 1000000000 images");
  EXPECT_EQ(error("/nowhere/at/all"), "/nowhere/at/all is not there");
}

using ::testing::ElementsAre;
using ::testing::EndsWith;

TEST(FirstImages, KeepTheirLabelsAndPixels) {
  const tests::TemporaryDirectory directory;
  tests::write_small_digits(directory.path(), 15, 0);
  const auto all = open_images(FileReader(), directory.path().string(), ImagePart::training);
  const auto first = first_images(open_images(FileReader(), directory.path().string(), ImagePart::training), 3);
  ASSERT_EQ(first->size(), 3u);
  EXPECT_THAT(first->labels(), ElementsAre(0, 1, 2));
  EXPECT_EQ(first->label_names(), all->label_names());
  EXPECT_EQ(first->shape(), all->shape());
  EXPECT_EQ(first->encoded(2), all->encoded(2));
  EXPECT_EQ(first->location(2), all->location(2));
  EXPECT_EQ(first_images(open_images(FileReader(), directory.path().string(), ImagePart::training), 99)->size(), 15u);
}

TEST(ListedImages, AreTheFilesThatAreNamed) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "a.png", tests::recorded_image_file("decoded.jsonl", "png RGB"));
  const auto set = list_images({directory / "a.png", directory / "a.png"});
  EXPECT_EQ(set->size(), 2u);
  EXPECT_EQ(set->name(1), (directory / "a.png").string());
  EXPECT_EQ(set->decode(0).shape.channels, 3u);
  EXPECT_THAT(tests::error_of([&] { list_images({directory / "b.png"}); }), EndsWith("b.png is not there"));
  EXPECT_THAT(tests::error_of([&] { list_images({directory.path()}); }), EndsWith("is a directory, not an image"));
  tests::write_file(directory / "c.png", "no picture");
  const std::filesystem::path damaged = directory / "c.png";
  EXPECT_EQ(tests::error_of_file(damaged, [&] { list_images({damaged})->decode(0); }), "F: is neither JPEG nor PNG")
      << "`mylos prepare` takes no list of pictures";
}

}  // namespace
}  // namespace mylos::data
