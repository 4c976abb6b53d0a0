#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text/unicode.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// A text that the stages of a tokenizer.json change, aligned to the text as it was.
namespace mylos::data {

/// A text in UTF-8. Byte i comes from the code points origins[i] of the original text.
struct AlignedText {
  std::string text;
  std::vector<CodePointRange> origins;

  void append(std::string_view bytes, std::span<const CodePointRange> from);
  void clear();
};

/// Returns `text` aligned to itself. `text` must be UTF-8.
AlignedText aligned(std::string_view text);

/// The stages of a tokenizer.json make too much of a text.
struct TextGrowth : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws TextGrowth if what became of the code points `origins` has more than 64 bytes for each, and 1 MiB.
void ensure_fits(std::size_t bytes, std::span<const CodePointRange> origins);

/// Returns the stage `name`, which names itself if it makes too much of a text.
template <class Text>
std::function<void(Text&)> bounded(std::function<void(Text&)> stage, std::string name) {
  return [stage = std::move(stage), name = std::move(name)](Text& text) {
    try {
      stage(text);
    } catch (const TextGrowth& error) {
      throw std::runtime_error(name + ": " + error.what());
    }
  };
}

/// Writes a changed copy of a text to the end of another. Characters keep their origins as in `tokenizers`.
class Rewriter {
 public:
  /// `text` and `origins` have the same length. Both, and `out`, must outlive the object.
  Rewriter(std::string_view text, std::span<const CodePointRange> origins, AlignedText& out);

  bool at_end() const { return position_ == text_.size(); }
  /// Returns the rest of the text.
  std::string_view rest() const { return text_.substr(position_); }
  /// Copies the next `bytes`, which are whole characters.
  void keep(std::size_t bytes);
  /// Drops the next character.
  void skip();
  /// Writes `c` in the place of the next character.
  void replace(char32_t c);
  /// Writes `c` after the character before, whose origin it takes.
  void insert(char32_t c);

 private:
  void put(char32_t c, CodePointRange origin);

  std::string_view text_;
  std::span<const CodePointRange> origins_;
  AlignedText& out_;
  std::size_t position_ = 0;
};

/// Writes `added` before a text that is not empty. All of it takes the origin of the first character.
void prepend(AlignedText& text, std::string_view added);

/// The bytes [begin, end) of a text. `id` is that of the added token that they are, and negative if they are none.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  TokenId id = -1;
};

/// A text and its pieces, from left to right. Between pieces may be text that belongs to none.
struct PiecedText {
  AlignedText aligned;
  std::vector<Piece> pieces;

  std::string_view view(const Piece& piece) const;
  std::span<const CodePointRange> origins(const Piece& piece) const;
  /// Returns the code points of a part of the text that is not empty.
  CodePointRange range(std::size_t begin, std::size_t end) const;

  /// Cuts each piece that is no added token. `cut(piece, out)` appends its parts; empty ones are dropped.
  template <class Cut>
  void split(Cut cut) {
    std::vector<Piece> parts;
    parts.reserve(pieces.size());
    for (const Piece& piece : pieces) {
      if (piece.id < 0) {
        cut(piece, parts);
      } else {
        parts.push_back(piece);
      }
    }
    std::erase_if(parts, [](const Piece& piece) { return piece.begin == piece.end; });
    pieces = std::move(parts);
  }

  /// Changes the text of each piece that is no added token. `change(piece, out)` appends what it becomes to `out`.
  template <class Change>
  void rewrite(Change change) {
    AlignedText changed;
    changed.text.reserve(aligned.text.size() + aligned.text.size() / 2);
    changed.origins.reserve(aligned.text.size() + aligned.text.size() / 2);
    for (Piece& piece : pieces) {
      const std::size_t begin = changed.text.size();
      if (piece.id < 0) {
        change(piece, changed);
        ensure_fits(changed.text.size(), aligned.origins);
      } else {
        changed.append(view(piece), origins(piece));
      }
      piece = {begin, changed.text.size(), piece.id};
    }
    std::erase_if(pieces, [](const Piece& piece) { return piece.begin == piece.end; });
    aligned = std::move(changed);
  }
};

}  // namespace mylos::data
