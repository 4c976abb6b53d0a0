#pragma once

#include "train/monitor/log_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

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

struct Scalar {
  std::string tag;
  double value = 0.0;  ///< stored as float
};

/// Returns the name for event files of this process: events.out.tfevents.<seconds since 1970>.<host>.<pid>.
std::string event_file_name();

/// Writes a TensorBoard event file: records of {length, masked CRC-32C of the length, event, masked CRC-32C of the
/// event}, with each event a message (tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.cc). Each
/// call adds one record. Errors: those of LogFile.
class EventFile {
 public:
  using Clock = std::function<double()>;  ///< seconds since 1970

  EventFile(std::filesystem::path file, Clock clock, Notice notice = {});

  double now() const { return clock_(); }
  void add_scalars(std::size_t step, std::span<const Scalar> scalars);
  /// Discards data for `step` and later steps in files of earlier starts, if these files also began with such a record.
  void add_session_start(std::size_t step);
  /// Adds data that a TensorBoard plugin reads under `tag`.
  void add_plugin_data(std::string_view tag, std::string_view plugin, std::string_view content);
  /// See LogFile::missing.
  std::string missing() { return file_.missing(); }

 private:
  void add(std::size_t step, std::size_t field, std::string_view what);

  LogFile file_;
  Clock clock_;
};

}  // namespace mylos::train
