#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reads Python's pickles without running what they say: calls and imports are kept as values. Known are the opcodes
/// that Python 2 and 3 write for numbers, texts, lists, dictionaries and NumPy arrays in protocols 2 to 4.
namespace mylos::data {

class Pickle {
 public:
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,        ///< str of either Python, or bytes
    list,        ///< or tuple
    dictionary,  ///< keys and values in turn
    global,      ///< an import: "module name"
    call,        ///< of a global, with its arguments and, last, what the object was then set to (or none)
  };
  /// A place in the pickle's values.
  using Reference = std::size_t;

  struct Value {
    Kind kind = Kind::none;
    std::int64_t integer = 0;
    std::string_view text;  ///< in the bytes of the pickle
    std::vector<Reference> items;
  };

  /// Reads `bytes`, which must outlive the object. Throws std::runtime_error without a file: "ends early", an opcode
  /// that is not known, or a stack that does not fit.
  explicit Pickle(std::string_view bytes);

  const Value& operator[](Reference value) const { return values_[value]; }
  /// The object that was pickled.
  Reference root() const { return root_; }
  /// The value of a key in a dictionary; empty where there is none, or `dictionary` is of another kind.
  std::optional<Reference> find(Reference dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::vector<Value> values_;
  Reference root_ = 0;
};

/// A NumPy array of bytes.
struct PickledArray {
  std::vector<std::size_t> shape = {};
  std::string bytes;  ///< in C's order
};

/// The array at a place. Throws std::runtime_error where it is none of uint8 in C's order, or its sizes lie.
PickledArray pickled_array(const Pickle& pickle, Pickle::Reference location);

}  // namespace mylos::data
