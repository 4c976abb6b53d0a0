#pragma once

#include "nn/heads/linear_heads.hpp"
#include "nn/heads/vocabulary_head.hpp"

#include <memory>
#include <string>
#include <variant>

/// The heads that a task chooses from, as values: the type of the network's elements is chosen later.
namespace mylos::nn {

/// The head of make_span_head.
struct SpanHeadSettings {
  std::string name;
};

using HeadSettings = std::variant<SpanHeadSettings, VocabularyHeadSettings>;

/// Returns the head of `settings`. `initializer_range` is the standard deviation of a linear head's initial values.
template <class T>
std::unique_ptr<Head<T>> make_head(const HeadSettings& settings, float initializer_range) {
  struct Make {
    float range;
    std::unique_ptr<Head<T>> operator()(const SpanHeadSettings& head) const {
      return make_span_head<T>(head.name, range);
    }
    std::unique_ptr<Head<T>> operator()(const VocabularyHeadSettings& head) const {
      return make_vocabulary_head<T>(head);
    }
  };
  return std::visit(Make{initializer_range}, settings);
}

}  // namespace mylos::nn
