#include "core/work.hpp"

#include <atomic>

namespace mylos {
namespace {

std::atomic<WorkListener*> work_listener = nullptr;

}  // namespace

void set_work_listener(WorkListener* listener) { work_listener.store(listener, std::memory_order_relaxed); }

const char* with_work(const char* label, const std::optional<Work>& work) {
  WorkListener* const listener = work_listener.load(std::memory_order_relaxed);
  if (listener != nullptr && work) listener->launching(label, *work);
  return label;
}

}  // namespace mylos
