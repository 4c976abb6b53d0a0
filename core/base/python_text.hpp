#pragma once

#include <string>
#include <string_view>

/// Text functions with the results of Python 3, on which official scoring scripts and run_qa rely.
namespace mylos {

/// str.isspace of one code point: what split() splits at and lstrip() strips.
bool is_python_space(char32_t c);

/// The \w of re: str.isalnum or an underscore.
bool is_python_word(char32_t c);

/// str.lower(), with U+0130 and the final sigma as Python has them.
std::u32string python_lower(std::u32string_view text);

/// str.lstrip() of well-formed UTF-8.
std::string_view python_lstrip(std::string_view text);

/// repr() of a float: the shortest digits that read back the same.
std::string python_repr(double value);

}  // namespace mylos
