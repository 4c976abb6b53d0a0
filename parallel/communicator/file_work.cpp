#include "parallel/communicator/file_work.hpp"

#include <algorithm>
#include <atomic>

namespace mylos::parallel {
namespace {

using Clock = FileWork::Clock;

std::atomic<int> depth{0};
std::atomic<Clock::time_point> begun{}, ended{};

}  // namespace

FileWork::FileWork() {
  if (depth == 0) begun = Clock::now();
  ++depth;
}

FileWork::~FileWork() {
  if (depth == 1) ended = Clock::now();
  --depth;
}

bool FileWork::is_under_way() { return depth > 0; }

std::chrono::duration<double> FileWork::since(Clock::time_point begin) {
  const Clock::time_point end = is_under_way() ? Clock::now() : ended.load();
  return std::max(end - std::max(begin, begun.load()), Clock::duration::zero());
}

}  // namespace mylos::parallel
