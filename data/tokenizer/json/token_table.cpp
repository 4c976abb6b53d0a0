#include "data/tokenizer/json/token_table.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

namespace mylos::data {
namespace {

constexpr std::uint64_t spread = 0x9E3779B97F4A7C15ULL;  // the golden ratio

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size() * spread;
  while (!text.empty()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
    hash = (hash ^ word) * spread;
    hash ^= hash >> 29U;
    text.remove_prefix(std::min(text.size(), sizeof word));
  }
  hash *= spread;
  return hash ^ (hash >> 32U);
}

}  // namespace

TokenTable::TokenTable(std::string text, std::vector<Entry> entries)
    : text_(std::move(text)), entries_(std::move(entries)), slots_(std::bit_ceil(2 * entries_.size() + 2)) {
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    const std::string_view name = token(static_cast<TokenId>(id));
    const std::uint64_t hash = hash_of(name);
    slots_[slot_of(name, hash)] = {static_cast<std::uint32_t>(hash), static_cast<TokenId>(id)};
  }
}

TokenId TokenTable::find(std::string_view token) const {
  return slots_.empty() ? -1 : slots_[slot_of(token, hash_of(token))].id;
}

TokenId TokenTable::find_byte(unsigned char byte) const { return find(fmt::format("<0x{:02X}>", byte)); }

std::size_t TokenTable::slot_of(std::string_view token, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (hash >> 32U) & mask;
  const auto is_other = [&](const Slot& s) {
    return s.hash != static_cast<std::uint32_t>(hash) || this->token(s.id) != token;
  };
  while (slots_[slot].id >= 0 && is_other(slots_[slot])) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace mylos::data
