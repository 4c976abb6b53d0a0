#pragma once

#include <string>
#include <string_view>

/// Text functions with the same results as Python 3, on which official scoring scripts and run_qa rely.
namespace mylos {

/// str.isspace() for one code point. split() splits at such code points, and lstrip() strips them.
bool is_python_space(char32_t c);

/// \w in re: str.isalnum() or an underscore.
bool is_python_word(char32_t c);

/// str.isprintable() for one code point: repr() of a string has the others as escapes.
bool is_python_printable(char32_t c);

/// str.lower(), including Python's treatment of U+0130 and the final sigma.
std::u32string python_lower(std::u32string_view text);

/// str.lstrip() for well-formed UTF-8.
std::string_view python_lstrip(std::string_view text);

/// repr() of a float: the shortest digits that read back as the same value.
std::string python_repr(double value);

}  // namespace mylos
