#pragma once

#include <ctime>

#include "data/jinja/value.hpp"

/// Templates in the part of Jinja that published chat templates use, rendered as transformers renders them.
namespace mylos::data::jinja {

struct Code;

class Template {
 public:
  /// Parses `source`, with trim_blocks and lstrip_blocks. `name` says in errors where it is from. Errors:
  /// std::runtime_error with name and line, for what is malformed or not supported.
  Template(std::string_view source, std::string name);

  struct Rendering {
    std::string text;
    /// The bytes [begin, end) of `text` that {% generation %} blocks wrote.
    std::vector<std::pair<std::size_t, std::size_t>> generated;
  };
  /// Renders with these variables; strftime_now gives the time `now`. Errors: std::runtime_error with name and line,
  /// for errors of the template, raise_exception, and what takes too many steps, nests too deeply or is too large.
  Rendering render(const std::vector<std::pair<std::string, Value>>& variables, const std::tm& now) const;

  /// Returns whether the template has {% generation %} blocks.
  bool has_generation() const { return has_generation_; }

 private:
  std::string name_;
  std::shared_ptr<const Code> code_;
  bool has_generation_ = false;
};

}  // namespace mylos::data::jinja
