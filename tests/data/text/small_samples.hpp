#pragma once

#include "data/text/sample_file.hpp"

namespace mylos::tests {

/// Returns four samples from documents 0, 2 and 3 of five documents. The second of these documents is split.
inline data::PreparedSamples small_samples() {
  data::PreparedSamples prepared;
  prepared.options = {.max_length = 4, .begin = 1, .end = 2, .vocabulary_size = 11};
  prepared.tokenizer = {10, 0xabcdef01U};
  prepared.set.ids = {1, 3, 2, 1, 4, 5, 6, 7, 2, 1, 10, 2};
  prepared.set.starts = {0, 3, 7, 9, 12};
  prepared.set.documents = {0, 2, 2, 3};
  prepared.set.lines = {1, 4, 4, 5};
  prepared.set.counts = {
      .documents = 5, .empty_documents = 2, .long_documents = 1, .tokens_left_out = 0, .short_samples = 1};
  return prepared;
}

}  // namespace mylos::tests
