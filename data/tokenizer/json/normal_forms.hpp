#pragma once

#include "data/tokenizer/json/aligned_text.hpp"

/// The normal forms of Unicode.
namespace mylos::data {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Changes a text into a normal form. Origins are those that `tokenizers` gives: a composed character has the origin of
/// its first code point.
void normalize(AlignedText& text, NormalForm form);

}  // namespace mylos::data
