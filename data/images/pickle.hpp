#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reads Python pickles without executing them: calls and imports are stored as values. Supports the opcodes that
/// Python 2 and 3 write for numbers, strings, lists, dictionaries and NumPy arrays in protocols 2 to 4.
namespace mylos::data {

class Pickle {
 public:
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,        ///< str of Python 2 or 3, or bytes
    list,        ///< or tuple
    dictionary,  ///< keys and values alternate
    global,      ///< an import: "module name"
    call,        ///< items: a global, its arguments, and last the state set on the object afterwards (or none)
  };
  /// Index of a value in the pickle.
  using Reference = std::size_t;

  struct Value {
    Kind kind = Kind::none;
    std::int64_t integer = 0;
    std::string_view text;  ///< points into the bytes of the pickle
    std::vector<Reference> items;
  };

  /// Parses `bytes`, which must outlive the object. Throws std::runtime_error, without a file name, if the pickle "ends
  /// early", has an unknown opcode, or does not match its stack.
  explicit Pickle(std::string_view bytes);

  const Value& operator[](Reference value) const { return values_[value]; }
  /// Returns the pickled object.
  Reference root() const { return root_; }
  /// Returns the value of a key in a dictionary. nullopt if there is none, or `dictionary` is not a dictionary.
  std::optional<Reference> find(Reference dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::vector<Value> values_;
  Reference root_ = 0;
};

/// A NumPy array of bytes.
struct PickledArray {
  std::vector<std::size_t> shape = {};
  std::string bytes;  ///< in C order
};

/// Returns the array at `location`. Throws std::runtime_error unless it is uint8 in C order with consistent sizes.
PickledArray pickled_array(const Pickle& pickle, Pickle::Reference location);

}  // namespace mylos::data
