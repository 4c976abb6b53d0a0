#pragma once

namespace mylos::families {

/// What the body of a network gives to its head. A family gives one of these, and a task takes one.
enum class BodyOutput {
  tokens,       ///< a vector for each token, which depends on the whole text
  next_tokens,  ///< a vector for each token, which depends on it and the tokens before it
  images,       ///< a vector for each image
};

}  // namespace mylos::families
