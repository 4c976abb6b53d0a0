#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/documents.hpp"

namespace mylos::data {

/// Chess games in PGN: the moves of each game in the file's notation, joined by single spaces. Tags, move numbers,
/// comments, variations, NAGs, annotation signs and results are left out. A game ends with its result, at the tags of
/// the next game, or at the end of the file. A game without moves is an empty document.
class PgnDocuments : public DocumentReader {
 public:
  using DocumentReader::DocumentReader;

  bool next(Document& document) override;

 private:
  enum class Game { goes_on, ended };

  bool next_line();
  /// Reads the next token of the line. At a tag that belongs to the next game, returns `ended` without reading it.
  Game take_token(Document& document);
  Game take_tag(Document& document);
  Game take_symbol(Document& document);
  std::string_view read_symbol();
  void skip_comment();
  void close_variation();
  void begin_game(Document& document);
  [[noreturn]] void fail_at(std::size_t number, std::string_view problem) const;
  void check_closed() const;

  std::string_view rest_;                ///< unread part of the line
  std::size_t comment_line_ = 0;         ///< line of the open comment; 0 if there is none
  std::vector<std::size_t> variations_;  ///< lines of the open variations
  bool has_game_ = false;                ///< a tag, a move or a result of the current game has been read
  bool has_event_ = false;               ///< its Event tag has been read
};

}  // namespace mylos::data
