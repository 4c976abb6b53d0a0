#pragma once

#include <filesystem>
#include <string>

/// A BERT small enough to train in a test, and questions for it.
namespace mylos::tests {

struct TinyModel {
  bool has_head = true;
  std::size_t positions = 64;
  std::size_t hidden = 16, layers = 2, feed_forward = 32, heads = 2;
  float head_scale = 0.1f;       ///< standard deviation of the head's weights
  bool eight_overflows = false;  ///< a text with the word "8" (the fourth) gives a non-finite loss
};

/// Writes a Hugging Face directory with random weights. Its vocabulary has every letter and digit as a token and as a
/// continuation.
void write_tiny_model(const std::filesystem::path& directory, const TinyModel& model = {});

/// Returns 12 questions about 4 short texts in v1.1, or with `version` "v2.0", in which one of them has no answer.
std::string tiny_questions(const std::string& version = "1.1");

/// Returns questions whose windows all have the maximum length of `length` tokens. Each letter is a token.
std::string long_questions(std::size_t count, std::size_t length);

}  // namespace mylos::tests
