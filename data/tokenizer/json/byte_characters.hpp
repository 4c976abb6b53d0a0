#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "data/tokenizer/json/aligned_text.hpp"

/// The 256 visible characters by which GPT-2 and its successors write the bytes of a text, as U+0120 for a space.
namespace mylos::data {

inline constexpr char32_t space_character = 0x120;  // of the byte 0x20

/// Appends a character for each byte of `text`, with the byte's origin.
void append_byte_characters(std::string_view text, std::span<const CodePointRange> origins, AlignedText& out);

/// Returns the byte that `c` stands for; nullopt if it stands for none.
std::optional<unsigned char> byte_of_character(char32_t c);

/// Returns the byte of a token named "<0x0A>"; nullopt for other names.
std::optional<unsigned char> byte_of_name(std::string_view name);

/// Appends the bytes that a token's characters stand for; its text as it is if one stands for none.
void append_token_bytes(std::string_view token, std::string& bytes);

}  // namespace mylos::data
