#pragma once

#include <string>

/// A small tokenizer.model written byte by byte, in SentencePiece's protobuf format.
namespace mylos::tests {

/// Encodes a protobuf field that contains `bytes`.
inline std::string proto_field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

/// Encodes one piece with score 0. `kind` is 1 for normal, 2 for unknown, and 3 for control.
inline std::string proto_piece(const std::string& text, char kind) {
  return proto_field(1, proto_field(1, text) + std::string("\x15\0\0\0\0\x18", 6) + kind);
}

/// Encodes a BPE model (type 2) without normalisation, with five pieces: "<unk>", "<s>", "</s>", "a", "b".
inline std::string letters_model() {
  const std::string settings = std::string("\x18\x02", 2);
  const std::string identity = proto_field(1, "identity") + std::string("\x18\0\x20\0", 4);
  return proto_piece("<unk>", 2) + proto_piece("<s>", 3) + proto_piece("</s>", 3) + proto_piece("a", 1) +
         proto_piece("b", 1) + proto_field(2, settings) + proto_field(3, identity);
}

}  // namespace mylos::tests
