#include "core/base/text/python_json.hpp"

#include <cmath>
#include <cstddef>

#include "core/base/text/python_text.hpp"

namespace mylos {
namespace {

constexpr int one_line = -1;

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const OrderedJson& value) {
    if (value.is_structured() && !value.empty()) {
      write_structure(value);
    } else if (value.is_number_float()) {
      write_float(value.get<double>());
    } else {
      text_ += value.dump(-1, ' ', true);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void write_structure(const OrderedJson& value) {
    const bool is_object = value.is_object();
    text_ += is_object ? '{' : '[';
    ++depth_;
    bool is_first = true;
    for (const auto& item : value.items()) {
      if (!is_first) text_ += indent_ == one_line ? ", " : ",";
      is_first = false;
      new_line();
      if (is_object) text_ += OrderedJson(item.key()).dump(-1, ' ', true) + ": ";
      write(item.value());
    }
    --depth_;
    new_line();
    text_ += is_object ? '}' : ']';
  }

  void write_float(double value) {
    if (std::isnan(value)) {
      text_ += "NaN";
    } else if (std::isinf(value)) {
      text_ += value > 0 ? "Infinity" : "-Infinity";
    } else {
      text_ += python_repr(value);
    }
  }

  void new_line() {
    if (indent_ != one_line) text_ += '\n' + std::string(static_cast<std::size_t>(indent_ * depth_), ' ');
  }

  int indent_;
  int depth_ = 0;
  std::string text_;
};

std::string dump(const OrderedJson& value, int indent) {
  Writer writer(indent);
  writer.write(value);
  return writer.take();
}

}  // namespace

std::string python_json(const OrderedJson& value) { return dump(value, one_line); }

std::string python_json(const OrderedJson& value, int indent) { return dump(value, indent); }

}  // namespace mylos
