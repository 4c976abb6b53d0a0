#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/documents.hpp"

namespace mylos::data {

/// Chess games in PGN: each game's moves in the file's own notation, joined by one space. Tags, move numbers, comments,
/// variations, NAGs, annotation signs and results are left out. A game ends with its result, or where the next one's
/// tags begin, or with the file; one without moves is an empty document.
class PgnDocuments : public DocumentReader {
 public:
  using DocumentReader::DocumentReader;

  bool next(Document& document) override;

 private:
  enum class Game { goes_on, ended };

  bool next_line();
  /// Reads what comes next in the line. At a tag that belongs to the next game, ends without reading it.
  Game take_token(Document& document);
  Game take_tag(Document& document);
  Game take_symbol(Document& document);
  std::string_view read_symbol();
  void skip_comment();
  void close_variation();
  void begin_game(Document& document);
  [[noreturn]] void fail_at(std::size_t number, std::string_view problem) const;
  void check_closed() const;

  std::string_view rest_;                ///< of the line
  std::size_t comment_line_ = 0;         ///< where the open comment began; 0: there is none
  std::vector<std::size_t> variations_;  ///< where the open variations began
  bool has_game_ = false;                ///< a tag, a move or a result of the current game was read
  bool has_event_ = false;               ///< its tag Event was read
};

}  // namespace mylos::data
