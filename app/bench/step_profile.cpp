#include "app/bench/step_profile.hpp"

#include "core/base/error.hpp"
#include "core/kernels/products/gemm_label.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace mylos::app {
namespace {

namespace tools = Kokkos::Tools::Experimental;

StepProfile* listener = nullptr;
tools::EventSet callbacks_before;

/// Returns "mylos::gradients" for "mylos::gradients::layer.0".
std::string array_name(std::string_view label) {
  const std::size_t first = label.find("::");
  const std::size_t second = first == std::string_view::npos ? first : label.find("::", first + 2);
  return std::string(label.substr(0, second));
}

/// Returns whether the source of a copy is a single value, which Kokkos names like this.
bool is_value(std::string_view source) { return source == "(none)" || source == "Scalar"; }

/// Returns whether a region or kernel belongs to its outer span. Inside a copy or kernel they are Kokkos' own; inside a
/// product, those with foreign names are the library's.
bool is_part_of(const Span& outer, std::string_view name) {
  if (outer.kind == SpanKind::copy || outer.kind == SpanKind::kernel) return true;
  return outer.kind == SpanKind::product && !name.starts_with("mylos::");
}

}  // namespace

/// Callbacks for Kokkos Tools.
struct StepProfile::Callbacks {
  static void begin_kernel(const char* label, std::uint32_t, std::uint64_t*) { listener->begin_kernel(label); }
  static void end_kernel(std::uint64_t) { listener->end(); }
  static void push_region(const char* name) {
    const std::optional<GemmLabel> product = parse_gemm_label(name);
    listener->begin({product ? SpanKind::product : SpanKind::section, name, {}},
                    product ? std::optional(product_work(*product)) : std::nullopt);
  }
  static void end_span() { listener->end(); }
  static void begin_copy(Kokkos::Tools::SpaceHandle, const char* to, const void*, Kokkos::Tools::SpaceHandle,
                         const char* from, const void*, std::uint64_t bytes) {
    const bool fills = is_value(from);
    listener->begin({SpanKind::copy, fmt::format("{} {}", fills ? "fill of" : "copy to", array_name(to)), {}},
                    Work{.bytes = static_cast<double>(fills ? bytes : 2 * bytes)});
  }

  static tools::EventSet all() {
    tools::EventSet set{};
    set.begin_parallel_for = set.begin_parallel_reduce = set.begin_parallel_scan = begin_kernel;
    set.end_parallel_for = set.end_parallel_reduce = set.end_parallel_scan = end_kernel;
    set.push_region = push_region;
    set.pop_region = end_span;
    set.begin_deep_copy = begin_copy;
    set.end_deep_copy = end_span;
    return set;
  }
};

void SpanTotals::add_work(const std::optional<Work>& more) {
  if (work && more) {
    *work += *more;
  } else {
    work.reset();
  }
}

StepProfile::StepProfile() {
  require(listener == nullptr, "step profile: another profile is active");
  listener = this;
  callbacks_before = tools::get_callbacks();
  tools::set_callbacks(Callbacks::all());
  set_work_listener(this);
  mark();
}

StepProfile::~StepProfile() { stop(); }

void StepProfile::stop() {
  if (listener != this) return;
  set_work_listener(nullptr);
  tools::set_callbacks(callbacks_before);
  listener = nullptr;
}

const Profile& StepProfile::profile() {
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    Entry* const span = marks_[i].before;
    if (span != nullptr) span->second.seconds += marks_[i].time.seconds_since(marks_[i - 1].time);
  }
  marks_.erase(marks_.begin(), marks_.end() - 1);
  return profile_;
}

void StepProfile::mark() {
  Mark mark{.time = {}, .before = open_.empty() ? nullptr : open_.back()};
  mark.time.set(space_);
  marks_.push_back(std::move(mark));
}

void StepProfile::launching(const char* label, const Work& work) {
  launching_ = label;
  work_ = work;
}

void StepProfile::begin_kernel(const char* label) {
  const bool has_reported = launching_ == label;
  launching_.clear();
  begin({SpanKind::kernel, label, {}}, has_reported ? std::optional(work_) : std::nullopt);
}

void StepProfile::begin(Span span, const std::optional<Work>& work) {
  mark();
  if (!open_.empty() && is_part_of(open_.back()->first, span.name)) return open_.push_back(open_.back());
  if (!open_.empty() && open_.back()->first.kind == SpanKind::product) span.product = open_.back()->first.name;
  Entry& entry = *profile_.try_emplace(std::move(span)).first;
  ++entry.second.calls;
  entry.second.add_work(work);
  open_.push_back(&entry);
}

void StepProfile::end() {
  mark();
  if (!open_.empty()) open_.pop_back();  // empty if the span began before the profile
}

}  // namespace mylos::app
