#pragma once

#include "train/monitor/log_file.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace mylos::train {

struct Scalar {
  std::string tag;
  double value = 0.0;  ///< stored as float
};

/// The name event files of this process get: events.out.tfevents.<seconds since 1970>.<host>.<pid>.
std::string event_file_name();

/// TensorBoard's event files: records of {length, masked CRC-32C of it, event, masked CRC-32C of that}, each event a
/// message (tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.cc). Each call adds one record.
/// Errors as LogFile's.
class EventFile {
 public:
  using Clock = std::function<double()>;  ///< seconds since 1970

  EventFile(std::filesystem::path file, Clock clock, Notice notice = {});

  double now() const { return clock_(); }
  void add_scalars(std::size_t step, std::span<const Scalar> scalars);
  /// What files of earlier starts hold of `step` and later ones is void, where these began with one of these, too.
  void add_session_start(std::size_t step);
  /// What a plugin of TensorBoard reads from under `tag`.
  void add_plugin_data(std::string_view tag, std::string_view plugin, std::string_view content);
  /// LogFile's.
  std::string missing() { return file_.missing(); }

 private:
  void add(std::size_t step, std::size_t field, std::string_view what);

  LogFile file_;
  Clock clock_;
};

}  // namespace mylos::train
