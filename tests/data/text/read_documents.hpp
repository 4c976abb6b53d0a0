#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "data/text/documents.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::tests {

/// Returns "line: text" or "line: [ids]" for each document.
inline std::vector<std::string> describe_documents(data::DocumentReader& reader) {
  std::vector<std::string> lines;
  for (data::Document document; reader.next(document);) {
    std::string content = document.text;
    if (document.has_ids) {
      content = "[";
      for (const auto id : document.ids) content += fmt::format("{}{}", content.size() > 1 ? " " : "", id);
      content += ']';
    }
    lines.push_back(fmt::format("{}: {}", document.line, content));
  }
  return lines;
}

/// Writes `bytes` to `path` and describes its documents. Returns a single line "error: ..." if they are rejected, with
/// the file as "F".
inline std::vector<std::string> documents_in(const std::filesystem::path& path, data::DocumentFormat format,
                                             const std::string& bytes, const std::string& text_field = {}) {
  write_file(path, bytes);
  std::vector<std::string> lines;
  const auto message = error_of_file(path, [&] {
    const auto reader = data::open_documents(path, format, text_field);
    lines = describe_documents(*reader);
  });
  if (message != "(nothing was thrown)") return {"error: " + message};
  return lines;
}

}  // namespace mylos::tests
