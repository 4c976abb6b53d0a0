#include "tests/support/file_size_limit.hpp"

#include <csignal>

namespace mylos::tests {

FileSizeLimit::FileSizeLimit(rlim_t bytes) {
  ::getrlimit(RLIMIT_FSIZE, &old_limit_);
  old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, old_limit_.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

FileSizeLimit::~FileSizeLimit() {
  ::setrlimit(RLIMIT_FSIZE, &old_limit_);
  std::signal(SIGXFSZ, old_handler_);
}

}  // namespace mylos::tests
