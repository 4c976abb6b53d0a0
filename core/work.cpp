#include "core/work.hpp"

#include <atomic>

namespace mylos {
namespace {

std::atomic<WorkListener*> work_listener = nullptr;
thread_local std::size_t launches_of_thread = 0;

}  // namespace

void set_work_listener(WorkListener* listener) { work_listener.store(listener, std::memory_order_relaxed); }

std::size_t launches() { return launches_of_thread; }
void note_launch() { ++launches_of_thread; }

const char* with_work(const char* label, const std::optional<Work>& work) {
  note_launch();
  WorkListener* const listener = work_listener.load(std::memory_order_relaxed);
  if (listener != nullptr && work) listener->launching(label, *work);
  return label;
}

}  // namespace mylos
