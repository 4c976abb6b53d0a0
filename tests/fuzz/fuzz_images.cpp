// Images and pickles. The first byte selects the input: k is a CIFAR pickle, i is an idx file of images, p is a region
// of an image, and any other is a whole image.

#include <algorithm>
#include <stdexcept>

#include "data/images/cifar_images.hpp"
#include "data/images/decode.hpp"
#include "data/images/idx_images.hpp"
#include "tests/fuzz/inputs.hpp"

namespace {

using namespace mylos;

constexpr std::size_t largest_side = 512;  // larger images take time and find nothing else

struct TooLarge {};

void check(const data::Image& image) {
  tests::expect(image.pixels.size() == image.shape.size(), "an image has its pixels");
  tests::expect(image.shape.channels == 3, "an image has three channels");
}

void check(const data::ImageSet& set) {
  for (std::size_t i = 0; i < set.size(); ++i) {
    tests::expect(static_cast<std::size_t>(set.label(i)) < set.label_names().size(), "a label has a name");
    tests::expect(set.decode(i).pixels.size() == set.shape()->size(), "an image has its pixels");
  }
}

void decode(std::string_view bytes, bool is_part) {
  check(data::decode_image(bytes, [&](std::size_t height, std::size_t width) {
    if (height > largest_side || width > largest_side) throw TooLarge();
    if (!is_part) return data::Region{0, 0, height, width};
    return data::Region{height / 3, width / 4, std::max<std::size_t>(height / 2, 1), (width + 1) / 2};
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto text = tests::as_text(bytes, size);
  const auto content = text.substr(1);
  try {
    if (text[0] == 'k') {
      const tests::MemoryFile file(content);
      check(*data::read_cifar_images(mylos::FileReader(), {.files = {file.path()}, .is_pickled = true}));
    } else if (text[0] == 'i') {
      const tests::MemoryFile images(content), labels(std::string_view("\0\0\x08\x01\0\0\0\x01\x05", 9));
      check(*data::read_idx_images(mylos::FileReader(), {images.path(), labels.path()}));
    } else {
      decode(content, text[0] == 'p');
    }
  } catch (const TooLarge&) {
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
