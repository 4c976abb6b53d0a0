#include "tests/fuzz/inputs.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace mylos::tests {

std::string_view as_text(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

MemoryFile::MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
  expect(descriptor_ >= 0, "memfd_create");
  expect(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
         "write to a memory file");
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

std::filesystem::path MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

InputDirectory::InputDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "mylos-fuzz-XXXXXX").string();
  expect(::mkdtemp(name.data()) != nullptr, "mkdtemp");
  path_ = name;
}

InputDirectory::~InputDirectory() {
  std::error_code ignored;  // a destructor cannot report errors
  std::filesystem::remove_all(path_, ignored);
}

void InputDirectory::put(const std::filesystem::path& name, std::string_view bytes) const {
  std::filesystem::create_directories((path_ / name).parent_path());
  std::filesystem::remove(path_ / name);  // some file systems wait for the disk when a file is truncated and rewritten
  std::ofstream stream(path_ / name, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  expect(stream.good(), "write an input");
}

std::string InputDirectory::get(const std::filesystem::path& name) const {
  std::ifstream stream(path_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "ERROR: broken: %s\n", what);
  std::abort();
}

}  // namespace mylos::tests
