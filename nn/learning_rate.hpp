#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The learning rate as a function of the step alone.
namespace mylos::nn {

enum class ScheduleKind { linear, constant, cosine, step, warmup_stable_decay, polynomial };

struct ScheduleName {
  ScheduleKind kind;
  std::string name;
  std::vector<std::string> aliases;  ///< transformers' names, where they differ
};
/// All schedules; the default comes first.
const std::vector<ScheduleName>& schedule_names();
/// Returns "linear, constant, cosine, step, ... or ...".
std::string schedule_list();
/// Errors: std::invalid_argument, which lists the names.
ScheduleKind parse_schedule(std::string_view name);
std::string_view to_string(ScheduleKind kind);

struct LearningRateSchedule {
  ScheduleKind kind = ScheduleKind::linear;
  double peak = 3e-5;
  std::size_t steps = 1;                      ///< T, steps of the whole run
  std::size_t warmup_steps = 0;               ///< W
  double minimum = 0.0;                       ///< lower bound after warm-up; at most the peak
  std::vector<std::size_t> decay_steps = {};  ///< for `step`: ascending, from the start of the run, e.g. {100, 200}
  double decay_factor = 0.1;                  ///< for `step`
  double decay_fraction = 0.1;                ///< for `warmup_stable_decay`: part of T, in (0, 1]
  double decay_power = 1.0;                   ///< for `polynomial`

  /// Returns the learning rate of step i, counted from 0. In warm-up it is peak i / W. After that:
  /// - linear: minimum + (peak - minimum) (T - i) / (T - W);
  /// - cosine: half a period from the peak to the minimum;
  /// - constant: the peak;
  /// - step: the peak times decay_factor for each element of decay_steps that is at most i, as in
  ///   torch.optim.lr_scheduler.MultiStepLR, but at least the minimum;
  /// - warmup_stable_decay: the peak, and in the last D = ceil(decay_fraction T) steps, at most T - W, half a period of
  /// a
  ///   cosine to the minimum, as get_wsd_schedule of transformers;
  /// - polynomial: minimum + (peak - minimum) ((T - i) / (T - W))^decay_power, as
  ///   get_polynomial_decay_schedule_with_warmup of transformers, whose lr_end of 1e-7 stands for a minimum of 0.
  double at(std::size_t step) const;

 private:
  double decayed_at(std::size_t step) const;
  /// Returns how much of the way from the minimum to the peak remains when `left` of `falling` steps after warm-up do.
  double fall(double left, double falling) const;
};

}  // namespace mylos::nn
