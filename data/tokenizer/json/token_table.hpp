#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// The tokens of a model by id and by text, compactly: at most 40 bytes a token beside its text. Immutable once built.
class TokenTable {
 public:
  /// A token's text, bytes [begin, begin + size) of the table's text.
  struct Entry {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };

  TokenTable() = default;
  /// Uses `entries` in the order of their ids. Of equal tokens the one with the higher id is found.
  TokenTable(std::string text, std::vector<Entry> entries);

  std::size_t size() const { return entries_.size(); }
  /// Returns the text of a token whose id is in the table.
  std::string_view token(TokenId id) const {
    const Entry& entry = entries_[static_cast<std::size_t>(id)];
    return std::string_view(text_).substr(entry.begin, entry.size);
  }
  /// Returns the id of exactly `token`, or -1.
  TokenId find(std::string_view token) const;
  /// Returns the id of "<0x0A>" for the byte 10, or -1.
  TokenId find_byte(unsigned char byte) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = -1;
  };
  std::size_t slot_of(std::string_view token, std::uint64_t hash) const;

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // open addressing; an id of -1: free
};

}  // namespace mylos::data
