#pragma once

#include "nn/heads/linear_heads.hpp"
#include "nn/heads/vocabulary_head.hpp"

#include <functional>
#include <memory>
#include <string>
#include <tuple>

/// The heads that a task chooses from, as values: the type of the network's elements is chosen later.
namespace mylos::nn {

class HeadSettings {
 public:
  /// `make(T(), initializer_range)` returns the head for elements of type T. `initializer_range` is the standard
  /// deviation of a linear head's initial values.
  template <class Make>
  explicit HeadSettings(const Make& make) : makers_(maker<float>(make), maker<bfloat16>(make), maker<half>(make)) {}

  template <class T>
  std::unique_ptr<Head<T>> make_head(float initializer_range) const {
    return std::get<Maker<T>>(makers_)(initializer_range);
  }

 private:
  template <class T>
  using Maker = std::function<std::unique_ptr<Head<T>>(float initializer_range)>;
  template <class T, class Make>
  static Maker<T> maker(const Make& make) {
    return [make](float initializer_range) { return make(T(), initializer_range); };
  }

  std::tuple<Maker<float>, Maker<bfloat16>, Maker<half>> makers_;
};

/// The head of make_span_head.
inline HeadSettings span_head(const std::string& name) {
  return HeadSettings([name]<class T>(T, float range) { return make_span_head<T>(name, range); });
}

/// The head of make_vocabulary_head.
inline HeadSettings vocabulary_head(const VocabularyHeadSettings& settings) {
  return HeadSettings([settings]<class T>(T, float) { return make_vocabulary_head<T>(settings); });
}

}  // namespace mylos::nn
