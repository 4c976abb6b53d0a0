#pragma once

#include "data/images/encode_png.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/data/images/small_images.hpp"
#include "tests/tasks/image_classification/small_classifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace mylos::tests {

/// A small ResNet without weights and small digits: 41 for training, so that batches of 8 leave one over, and 20 for
/// evaluation.
class ImageRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_small_classifier(model_);
    write_small_digits(digits_, 41, 20);
  }

  /// Returns the command that trains the small model on the digits in batches of 8 and groups of 4. `more` can override
  /// it.
  std::vector<std::string> train_words(const std::filesystem::path& output,
                                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"train", "--output", output, "--gemm", default_provider()};
    const auto unless_given = [&](const std::vector<std::string>& other) {
      if (std::ranges::find(more, other.front()) == more.end()) words.insert(words.end(), other.begin(), other.end());
    };
    if (std::ranges::find(more, "--arch") == more.end()) unless_given({"--model", model_});
    unless_given({"--train", digits_});
    unless_given({"--dev", digits_});
    unless_given({"--batch", "8"});
    unless_given({"--batch-norm-group", "4"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProgramRun train(const std::filesystem::path& output, const std::vector<std::string>& more = {}) const {
    return run_mylos(train_words(output, more));
  }
  /// Expects one error message on the last line. Notices may precede it.
  static void expect_refused(const ProgramRun& run, const std::string& what, int exit_code = 1) {
    EXPECT_EQ(run.exit_code, exit_code) << run.errors;
    const std::vector<std::string> lines = run.error_lines();
    ASSERT_FALSE(lines.empty()) << what;
    EXPECT_THAT(lines.back(), testing::AllOf(testing::StartsWith("mylos: error: "), testing::HasSubstr(what)));
  }
  /// Returns the command of a run on synthetic images, with the options that Derecho's scripts use.
  std::vector<std::string> derecho_words(const std::vector<std::string>& more) const {
    return joined({"train", "--arch", "resnet18", "--use_syn", "--image_size", "16", "--batch_size", "4",
                   "--num_epochs", "1", "--output", run_, "--gemm", default_provider()},
                  more);
  }
  /// Returns a PNG file of 16 x 16 pixels; black for 0.
  static std::string coloured_picture(std::uint8_t value) {
    data::Image image{{16, 16, 3}, {}};
    for (std::size_t i = 0; i < image.shape.size(); ++i) {
      image.pixels.push_back(static_cast<std::uint8_t>(value == 0 ? 0 : (31 * value + 7 * i) % 256));
    }
    return data::encode_png(image);
  }
  /// Writes two classes with four different PNG files each.
  static void write_coloured_pictures(const std::filesystem::path& directory) {
    for (std::size_t i = 0; i < 8; ++i) {
      write_file(directory / (i < 4 ? "cats" : "dogs") / (std::to_string(i % 4) + ".png"),
                 coloured_picture(static_cast<std::uint8_t>(i + 1)));
    }
  }
  /// Writes two classes with two PNG files each.
  void write_pictures() const {
    for (const char* file : {"cats/1.png", "cats/2.png", "dogs/1.png", "dogs/2.png"}) {
      write_file(pictures_ / file, recorded_image_file("decoded.jsonl", "png RGB"));
    }
  }

  TemporaryDirectory directory_;
  std::filesystem::path model_ = directory_ / "model", digits_ = directory_ / "digits",
                        pictures_ = directory_ / "pictures", run_ = directory_ / "run";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};  ///< not the user's timing cache
};

}  // namespace mylos::tests
