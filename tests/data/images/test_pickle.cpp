#include "data/images/pickle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/images/recorded_images.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string recorded_pickle(const std::string& name) { return tests::recorded_image_file("pickles.jsonl", name); }

std::string pickle_error(const std::string& bytes) {
  return tests::error_of([&] { const Pickle pickle(bytes); });
}

TEST(Pickle, ArraysOfEachProtocolAreRead) {
  for (const char* name :
       {"CIFAR-10 of Python 2", "CIFAR-10 in protocol 2", "CIFAR-10 in protocol 3", "CIFAR-10 in protocol 4"}) {
    const std::string bytes = recorded_pickle(name);
    const Pickle pickle(bytes);
    const auto labels = pickle.find(pickle.root(), "labels");
    ASSERT_TRUE(labels) << name;
    ASSERT_EQ(pickle[*labels].items.size(), 2u) << name;
    EXPECT_EQ(pickle[pickle[*labels].items[1]].integer, 9) << name;
    const auto names = pickle[pickle.find(pickle.root(), "filenames").value()].items;  // one string, referenced again
    for (const auto file : names) EXPECT_EQ(pickle[file].text, "a.png") << name;
    EXPECT_EQ(names.size(), 2u) << name;
    const PickledArray array = pickled_array(pickle, pickle.find(pickle.root(), "data").value());
    EXPECT_THAT(array.shape, ::testing::ElementsAre(2, 3072)) << name;
    for (std::size_t i = 0; i < array.bytes.size(); ++i) {
      ASSERT_EQ(static_cast<unsigned char>(array.bytes[i]), i * 7 % 251) << name << " at " << i;
    }
  }
}

TEST(Pickle, NumbersAndTextsAreRead) {
  for (const char* name : {"names in protocol 2", "names in protocol 4"}) {
    const std::string bytes = recorded_pickle(name);
    const Pickle pickle(bytes);
    const auto value = [&](const char* key) { return pickle[pickle.find(pickle.root(), key).value()]; };
    EXPECT_EQ(value("num_cases_per_batch").integer, 10000);
    EXPECT_EQ(value("big").integer, std::int64_t{1} << 40);
    EXPECT_EQ(value("ratio").kind, Pickle::Kind::real);
    EXPECT_EQ(pickle[value("label_names").items[3]].text, "class 3");
    EXPECT_FALSE(pickle.find(pickle.root(), "absent"));
  }
}

TEST(Pickle, OtherOpcodesAreNamedAndNothingRuns) {
  EXPECT_THAT(pickle_error(recorded_pickle("a set")), StartsWith("is a pickle with opcode 0x8f at byte 11"));
  EXPECT_EQ(pickle_error(recorded_pickle("protocol 5")), "is not a pickle: it is of a later protocol than 4 at byte 0");
  EXPECT_THAT(pickle_error("cos\nsystem\nS'true'\n"), StartsWith("is a pickle with opcode 0x53 at byte 11"));
  const std::string call =
      "\x80\x02"
      "cos\nsystem\nU\x04true\x85R.";  // os.system("true"): a value that is never called
  const Pickle pickle(call);
  EXPECT_EQ(pickle[pickle.root()].kind, Pickle::Kind::call);
  EXPECT_EQ(tests::error_of([&] { pickled_array(pickle, pickle.root()); }), "has no NumPy array where one is expected");
}

TEST(Pickle, OtherArraysAreRefused) {
  const auto array_error = [](const std::string& bytes) {
    const Pickle pickle(bytes);
    return tests::error_of([&] { pickled_array(pickle, pickle.find(pickle.root(), "data").value()); });
  };
  EXPECT_EQ(array_error(recorded_pickle("float32")), "has a NumPy array of another element type than uint8");
  EXPECT_EQ(array_error(recorded_pickle("Fortran")), "has a NumPy array in Fortran's order");
  std::string lying = recorded_pickle("CIFAR-10 of Python 2");
  lying[lying.find(std::string("K\x01K\x02M\x00\x0c", 7)) + 3] = 3;
  EXPECT_EQ(array_error(lying), "has a NumPy array whose sizes are not those of its 6144 bytes");
  lying[lying.find(std::string("K\x01K\x03M\x00\x0c", 7)) + 3] = 1;
  EXPECT_EQ(array_error(lying), "has a NumPy array of 3072 elements with 6144 bytes");
}

TEST(Pickle, BrokenOnesAreRefused) {
  EXPECT_EQ(pickle_error(""), "ends early");
  EXPECT_EQ(pickle_error("."), "is not a pickle: it takes from an empty stack at byte 0");
  EXPECT_EQ(pickle_error("NN."), "is not a pickle: it leaves more than one object at byte 2");
  EXPECT_EQ(pickle_error("t."), "is not a pickle: it has no mark at byte 0");
  EXPECT_EQ(pickle_error("N(a"), "is not a pickle: it takes from an empty stack at byte 2");
  EXPECT_EQ(pickle_error("NNa."), "is not a pickle: it adds to another object than a list or dictionary at byte 2");
  EXPECT_EQ(pickle_error("}(Nu."), "is not a pickle: it has a key without a value at byte 3");
  EXPECT_EQ(pickle_error("h\x05."), "is not a pickle: it asks for an object that does not exist at byte 0");
  EXPECT_EQ(pickle_error("NNb."), "is not a pickle: it sets the state of something that is not an object at byte 2");
  EXPECT_EQ(pickle_error("\x8a\x09 more bytes than that"),
            "is not a pickle: it has an integer of more than 64 bits at byte 0");
  EXPECT_EQ(pickle_error("T\xff\xff\xff\xff."), "ends early");
  EXPECT_EQ(pickle_error(std::string("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.")), "ends early");
  const std::string whole = recorded_pickle("CIFAR-100 in protocol 4");
  for (std::size_t size = 0; size < whole.size(); size += 31) {
    EXPECT_EQ(pickle_error(whole.substr(0, size)), "ends early") << size;
  }
}

TEST(Pickle, AListThatHoldsItselfIsReadOnce) {
  const std::string bytes(
      "]q\x01h\x01"
      "a.");
  const Pickle pickle(bytes);
  EXPECT_EQ(pickle[pickle.root()].items, std::vector<Pickle::Reference>{pickle.root()});
}

}  // namespace
}  // namespace mylos::data
