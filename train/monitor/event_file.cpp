#include "train/monitor/event_file.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/process/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <utility>

namespace mylos::train {
namespace {

// message Event { double wall_time = 1; int64 step = 2;
//                 oneof what { string file_version = 3; Summary summary = 5; SessionLog session_log = 7; } }
constexpr std::size_t file_version = 3, summary = 5, session_log = 7;

// message Summary { repeated Value value = 1; } (tensorflow/core/framework/summary.proto)
// message Value { string tag = 1; float simple_value = 2; TensorProto tensor = 8; SummaryMetadata metadata = 9; }
std::string encode_scalars(std::span<const Scalar> scalars) {
  std::string message;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_float(value, 2, static_cast<float>(scalar.value));
    put_bytes(message, 1, value);
  }
  return message;
}

// message SummaryMetadata { PluginData plugin_data = 1; }, message PluginData { string plugin_name = 1; bytes content =
// 2; } With an empty tensor: message TensorProto { DataType dtype = 1; TensorShapeProto tensor_shape = 2; } with
// DT_FLOAT = 1, and message TensorShapeProto { repeated Dim dim = 2; }, message Dim { int64 size = 1; }.
std::string encode_plugin_data(std::string_view tag, std::string_view plugin, std::string_view content) {
  std::string data, metadata, size, shape, tensor, value, message;
  put_bytes(data, 1, plugin);
  put_bytes(data, 2, content);
  put_bytes(metadata, 1, data);
  put_integer(size, 1, 0);
  put_bytes(shape, 2, size);
  put_integer(tensor, 1, 1);
  put_bytes(tensor, 2, shape);
  put_bytes(value, 1, tag);
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, metadata);
  put_bytes(message, 1, value);
  return message;
}

/// Masks the CRC as record files do, because a CRC over data that contains CRCs is weak.
std::uint32_t masked_crc(std::string_view text) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(text.data(), text.size())));
  return std::rotr(crc, 15) + 0xA282EAD8u;
}

std::string as_record(std::string_view event) {
  std::string record;
  put_little_endian(record, std::uint64_t{event.size()});
  put_little_endian(record, masked_crc(record));
  record += event;
  put_little_endian(record, masked_crc(event));
  return record;
}

enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80u);
  out += static_cast<char>(value);
}

void put_key(std::string& out, std::uint64_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint64_t>(wire));
}

}  // namespace

std::string event_file_name() {
  return fmt::format("events.out.tfevents.{}.{}.{}", static_cast<long long>(seconds_since_1970()), host_name(),
                     ::getpid());
}

EventFile::EventFile(std::filesystem::path file, Clock clock, Notice notice)
    : file_(std::move(file), std::move(notice)), clock_(std::move(clock)) {
  add(0, file_version, "brain.Event:2");
}

void EventFile::add_scalars(std::size_t step, std::span<const Scalar> scalars) {
  add(step, summary, encode_scalars(scalars));
}

// message SessionLog { SessionStatus status = 1; } with START = 1.
void EventFile::add_session_start(std::size_t step) {
  std::string session;
  put_integer(session, 1, 1);
  add(step, session_log, session);
}

void EventFile::add_plugin_data(std::string_view tag, std::string_view plugin, std::string_view content) {
  add(0, summary, encode_plugin_data(tag, plugin, content));
}

void EventFile::add(std::size_t step, std::size_t field, std::string_view what) {
  std::string event;
  put_double(event, 1, clock_());
  put_integer(event, 2, step);
  put_bytes(event, field, what);
  file_.append(as_record(event));
}

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
