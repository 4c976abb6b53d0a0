#include "data/images/synthetic_images.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/error.hpp"
#include "core/random.hpp"
#include "data/images/memory_images.hpp"

namespace mylos::data {
namespace {

constexpr std::string_view synthetic_prefix = "synthetic:";
constexpr std::uint64_t synthetic_key = 0x73796e7468657469;  // a fixed seed, so that all runs use the same images
constexpr std::uint64_t label_stream = ~std::uint64_t{0};
constexpr std::size_t most_synthetic_images = 1000000000;

class SyntheticImages : public ImageSet {
 public:
  SyntheticImages(std::size_t count, std::size_t height, std::size_t width, std::size_t labels) {
    shape_ = {height, width, 3};
    label_names_ = numbered_labels(labels);
    labels_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t word = philox(synthetic_key, i, label_stream).word[0];
      labels_[i] = static_cast<std::int32_t>(word * labels >> 32);
    }
  }

  std::string name(std::size_t) const override { return {}; }
  std::string location(std::size_t index) const override { return fmt::format("synthetic image {}", index); }

  std::string encoded(std::size_t index) const override {
    std::string pixels(shape_->size(), '\0');
    for (std::size_t begin = 0; begin < pixels.size(); begin += sizeof(RandomWords)) {
      const RandomWords words = philox(synthetic_key, index, begin);
      std::memcpy(pixels.data() + begin, words.word, std::min(sizeof words, pixels.size() - begin));
    }
    return pixels;
  }
};

/// Removes a number and the "x" after it from the front of `text`.
std::optional<std::size_t> take_size(std::string_view& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value == 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('x')) text.remove_prefix(1);
  return value;
}

}  // namespace

bool is_synthetic(const std::string& data) { return data.starts_with(synthetic_prefix); }

std::unique_ptr<ImageSet> make_synthetic_images(const std::string& data, std::size_t labels) {
  std::string_view text = std::string_view(data).substr(synthetic_prefix.size());
  const auto count = take_size(text), height = take_size(text), width = take_size(text);
  const bool is_whole = count && height && width && text.empty() &&
                        data == fmt::format("{}{}x{}x{}", synthetic_prefix, *count, *height, *width);
  ensure(is_whole, fmt::format("{}: expected synthetic:COUNTxHxW, as synthetic:1000x224x224", data));
  ensure(*count <= most_synthetic_images, fmt::format("{}: at most {} images", data, most_synthetic_images));
  ensure(labels > 0, fmt::format("{}: synthetic images need at least one label", data));
  try {
    check_image_size(*height, *width);
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: an image {}", data, error.what()));
  }
  return std::make_unique<SyntheticImages>(*count, *height, *width, labels);
}

}  // namespace mylos::data
