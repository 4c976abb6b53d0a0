#include "train/monitor/protocol_buffers.hpp"

#include <bit>

namespace mylos::train {
namespace {

enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80u);
  out += static_cast<char>(value);
}

void put_key(std::string& out, std::uint64_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint64_t>(wire));
}

}  // namespace

void put_integer(std::string& out, std::uint64_t field, std::uint64_t value) {
  put_key(out, field, Wire::varint);
  put_varint(out, value);
}

void put_float(std::string& out, std::uint64_t field, float value) {
  put_key(out, field, Wire::fixed32);
  put_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

void put_double(std::string& out, std::uint64_t field, double value) {
  put_key(out, field, Wire::fixed64);
  put_little_endian(out, std::bit_cast<std::uint64_t>(value));
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

}  // namespace mylos::train
