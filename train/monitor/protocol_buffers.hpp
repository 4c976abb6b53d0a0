#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Writes the Protocol Buffers wire format, limited to the field types in TensorBoard's messages
/// (protobuf.dev/programming-guides/encoding).
namespace mylos::train {

/// Appends the bytes of an unsigned integer, lowest first.
template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t byte = 0; byte < sizeof(T); ++byte) out += static_cast<char>((value >> (8 * byte)) & 0xFFu);
}

/// Append field `field` to a message: an integer, enumerator or boolean; a number; a string or message.
void put_integer(std::string& out, std::uint64_t field, std::uint64_t value);
void put_float(std::string& out, std::uint64_t field, float value);
void put_double(std::string& out, std::uint64_t field, double value);
void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes);

}  // namespace mylos::train
