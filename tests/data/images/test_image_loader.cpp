#include "data/images/image_loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/base/error.hpp"
#include "data/images/synthetic_images.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

namespace mylos::data {
namespace {

/// Images of 4 x 4 pixels. Some fail, and all wait for the gate if there is one.
class TroubledImages : public ImageSet {
 public:
  TroubledImages() {
    shape_ = {4, 4, 3};
    label_names_ = {"a", "b"};
    for (int i = 0; i < 100; ++i) labels_.push_back(i % 2);
  }
  std::string name(std::size_t) const override { return {}; }
  std::string location(std::size_t) const override { return {}; }
  std::string encoded(std::size_t index) const override {
    ++asked;
    if (gate.valid()) gate.wait();
    if (index == late_image) tests::wait_until([this] { return failures > 0; });
    if (index >= 50) ++failures;
    if (index >= 50) throw DamagedImage("image " + std::to_string(index) + " is damaged");
    return std::string(48, static_cast<char>(index));
  }

  std::shared_future<void> gate;
  mutable std::atomic<int> asked = 0;
  mutable std::atomic<int> failures = 0;
  std::size_t late_image = 1000;  ///< fails only after another image has failed
};

LoaderOptions options_for(std::size_t threads, std::size_t ahead = 2) {
  return {.transform = {.size = 4, .crop_fraction = 1.0}, .seed = 3, .threads = threads, .ahead = ahead};
}

/// Returns `count` requests of one to three images each.
ImageLoader::Order some_requests(std::uint64_t count) {
  return [count](std::uint64_t number) -> std::optional<ImageRequest> {
    if (number == count) return std::nullopt;
    ImageRequest request{.step = number + 10, .images = {}};
    for (std::uint64_t i = 0; i <= number % 3; ++i) request.images.push_back((7 * number + i) % 40);
    return request;
  };
}

TEST(ImageLoader, GivesTheRequestsInOrderWithAnyThreads) {
  const auto set = make_synthetic_images("synthetic:40x6x5", 10);
  for (const std::size_t threads : {1, 2, 5}) {
    LoaderOptions options = options_for(threads, threads == 5 ? 1 : 3);
    options.transform.augmentation = Augmentation::imagenet;
    ImageLoader loader(*set, options, some_requests(30));
    for (std::uint64_t number = 0; number < 30; ++number) {
      const ImageBatch* batch = loader.next();
      ASSERT_NE(batch, nullptr);
      const ImageRequest wanted = *some_requests(30)(number);
      EXPECT_EQ(batch->step, wanted.step);
      ASSERT_EQ(batch->images, wanted.images);
      std::vector<std::uint8_t> pixels(wanted.images.size() * 48);
      for (std::size_t i = 0; i < wanted.images.size(); ++i) {
        transform_image(*set, options.transform, {.seed = 3, .step = wanted.step, .image = wanted.images[i]},
                        std::span(pixels).subspan(i * 48, 48));
        EXPECT_EQ(batch->labels[i], set->label(wanted.images[i]));
      }
      EXPECT_EQ(batch->pixels, pixels) << number;
    }
    EXPECT_EQ(loader.next(), nullptr);
    EXPECT_EQ(loader.next(), nullptr);
  }
}

TEST(ImageLoader, AnEmptyRequestIsAnEmptyBatch) {
  const TroubledImages set;
  ImageLoader loader(set, options_for(2), [](std::uint64_t number) -> std::optional<ImageRequest> {
    if (number == 3) return std::nullopt;
    return ImageRequest{.step = number, .images = {}};
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next()->images.empty());
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(ImageLoader, TheEarliestErrorOfABatchReachesTheCaller) {
  for (const std::size_t threads : {1, 4}) {
    TroubledImages set;
    if (threads > 1) set.late_image = 61;
    ImageLoader loader(set, options_for(threads), [](std::uint64_t number) -> std::optional<ImageRequest> {
      if (number == 1) return ImageRequest{.step = 0, .images = {1, 61, 2, 60, 3, 62}};
      return ImageRequest{.step = 0, .images = {4}};
    });
    EXPECT_EQ(loader.next()->images.front(), 4u);
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(tests::error_of([&] { loader.next(); }), "image 61 is damaged");
    }
  }
}

TEST(ImageLoader, DamagedImagesAreReplacedOrBlack) {
  const TroubledImages set;
  for (const std::size_t threads : {1, 3}) {
    LoaderOptions options = options_for(threads);
    options.substitute = [](std::uint64_t step, std::uint64_t image, std::size_t tries) {
      EXPECT_EQ(step, 10u);
      return std::optional((image + 17 * tries) % 100);  // 60: 77, 94, 11
    };
    ImageLoader loader(set, options, [](std::uint64_t number) -> std::optional<ImageRequest> {
      if (number > 0) return std::nullopt;
      return ImageRequest{.step = 10, .images = {1, 60, 2}};
    });
    const ImageBatch* batch = loader.next();
    EXPECT_THAT(batch->images, testing::ElementsAre(1, 60, 2)) << "as requested";
    EXPECT_THAT(batch->labels, testing::ElementsAre(1, 1, 0));
    EXPECT_EQ(batch->pixels[48], 11);
    options.substitute = [](auto, auto, auto) { return std::nullopt; };
    ImageLoader black(set, options, [](std::uint64_t) { return ImageRequest{.step = 10, .images = {61, 3}}; });
    batch = black.next();
    EXPECT_THAT(batch->labels, testing::ElementsAre(1, 1));
    EXPECT_EQ(batch->pixels[0], 0);
    EXPECT_EQ(batch->pixels[48], 3);
  }
}

TEST(ImageLoader, OnlyDamagedImagesAreAnError) {
  const TroubledImages set;
  LoaderOptions options = options_for(2);
  options.substitute = [](auto, auto, auto) { return 70; };
  ImageLoader loader(set, options, [](std::uint64_t) { return ImageRequest{.step = 10, .images = {60}}; });
  EXPECT_EQ(tests::error_of([&] { loader.next(); }), "image 70 is damaged");
}

TEST(ImageLoader, AnErrorOfTheOrderReachesTheCaller) {
  const TroubledImages set;
  ImageLoader loader(set, options_for(2), [](std::uint64_t number) -> std::optional<ImageRequest> {
    if (number == 2) fail("no such step");
    return ImageRequest{.step = 0, .images = {number}};
  });
  loader.next(), loader.next();
  EXPECT_EQ(tests::error_of([&] { loader.next(); }), "no such step");
}

TEST(ImageLoader, MakesNoMoreThanAskedForAhead) {
  const TroubledImages set;
  const auto endless = [](std::uint64_t number) -> std::optional<ImageRequest> {
    return ImageRequest{.step = number, .images = {number % 40}};
  };
  ImageLoader loader(set, options_for(2, 2), endless);
  for (int i = 0; i < 20; ++i) loader.next();
  EXPECT_LE(set.asked, 20 + 2);
}

TEST(ImageLoader, WaitsForAnImage) {
  TroubledImages set;
  std::promise<void> gate;
  set.gate = gate.get_future();
  ImageLoader loader(set, options_for(1), some_requests(1));
  auto caller = std::async(std::launch::async, [&] { return loader.next(); });
  EXPECT_EQ(caller.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  gate.set_value();
  EXPECT_NE(caller.get(), nullptr);
}

TEST(ImageLoader, DestructionEndsInTheMiddleOfTheWork) {
  const TroubledImages set;
  for (int given = 0; given < 12; ++given) {
    ImageLoader loader(set, options_for(3, 1 + given % 3), some_requests(8));
    for (int i = 0; i < given; ++i) loader.next();
  }
}

}  // namespace
}  // namespace mylos::data
