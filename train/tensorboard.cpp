#include "train/tensorboard.hpp"

#include "core/crc32c.hpp"
#include "train/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

namespace mylos::train {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Appends the bytes of an unsigned integer, the lowest first, as records and the wire format both want them.
template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t byte = 0; byte < sizeof(T); ++byte) out += static_cast<char>((value >> (8 * byte)) & 0xFFu);
}

/// Fields of a Protocol Buffers message.
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80u);
  out += static_cast<char>(value);
}

void put_key(std::string& out, std::uint64_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// message Event { double wall_time = 1; int64 step = 2; oneof what { string file_version = 3; Summary summary = 5; } }
std::string encode_event(double wall_time, std::size_t step) {
  std::string event;
  put_key(event, 1, Wire::fixed64);
  put_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  put_key(event, 2, Wire::varint);
  put_varint(event, step);
  return event;
}

// message Summary { message Value { string tag = 1; float simple_value = 2; } repeated Value value = 1; }
std::string encode_summary(std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_key(value, 2, Wire::fixed32);
    put_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
    put_bytes(summary, 1, value);
  }
  return summary;
}

/// Masked as record files do it, because a CRC of data that holds CRCs is weak.
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

}  // namespace

std::string event_file_name() {
  return fmt::format("events.out.tfevents.{}.{}.{}", static_cast<long long>(seconds_since_1970()), host_name(),
                     ::getpid());
}

TensorBoard::TensorBoard(const std::filesystem::path& directory)
    : TensorBoard(directory / event_file_name(), seconds_since_1970) {}

TensorBoard::TensorBoard(std::filesystem::path file, Clock clock) : file_(std::move(file)), clock_(std::move(clock)) {
  std::string event = encode_event(clock_(), 0);
  put_bytes(event, 3, "brain.Event:2");
  file_.append(as_record(event));
}

void TensorBoard::start(const RunStart& run) {
  steps_per_epoch_ = run.steps_per_epoch;
  if (run.first_step == 0) return;
  // SessionLog session_log = 7 of Event; message SessionLog { SessionStatus status = 1; }, where START is 1.
  std::string session;
  put_key(session, 1, Wire::varint);
  put_varint(session, 1);
  std::string event = encode_event(clock_(), run.first_step + 1);
  put_bytes(event, 7, session);
  file_.append(as_record(event));
}

void TensorBoard::step(const StepReport& report) {
  std::vector<Scalar> scalars = {{"train/loss", report.loss},
                                 {"train/gradient_norm", report.gradient_norm},
                                 {"train/learning_rate", report.learning_rate},
                                 {"perf/tokens_per_second", report.tokens_per_second()},
                                 {"perf/memory", static_cast<double>(report.memory)}};
  if (report.loss_scale) scalars.push_back({"train/loss_scale", *report.loss_scale});
  write(report.step, scalars);
  last_step_ = report.step;
  epoch_losses_ += report.loss;
  ++epoch_steps_;
  if (steps_per_epoch_ > 0 && report.step % steps_per_epoch_ == 0) write_epoch_loss();
}

void TensorBoard::evaluation(const EvaluationReport& report) {
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : report.metrics) {
    scalars.push_back({"eval/" + (name == "validation_loss" ? "loss" : name), value});
  }
  write(report.step, scalars);
}

void TensorBoard::finish() {
  if (epoch_steps_ > 0) write_epoch_loss();
}

void TensorBoard::write(std::size_t step, std::span<const Scalar> scalars) {
  std::string event = encode_event(clock_(), step);
  put_bytes(event, 5, encode_summary(scalars));
  file_.append(as_record(event));
}

void TensorBoard::write_epoch_loss() {
  const std::array scalars = {Scalar{"train/epoch_loss", epoch_losses_ / static_cast<double>(epoch_steps_)}};
  write(last_step_, scalars);
  epoch_losses_ = 0.0;
  epoch_steps_ = 0;
}

}  // namespace mylos::train
