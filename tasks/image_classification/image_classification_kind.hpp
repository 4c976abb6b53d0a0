#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind for image classification.
const TaskKind& image_classification();

// Its parts, one file each.

/// Returns its options, which set its ImageConfig.
std::vector<Option<RunConfig>> image_options();

/// Returns the image classifier of a checkpoint. The labels, the channels, the stem, and the size, mean and deviation
/// of images come from the run's run.json. Values that run.json does not have come from the model's directory. Errors:
/// std::runtime_error naming the value that does not fit.
ExportedModel export_classifier(const TrainedModel& trained);

/// The command classify: prints the likeliest labels of pictures, five or as many as the model has.
void classify(const CommandCall& call);

/// Returns the images with the largest losses that the best evaluation of each run classified wrongly, with pictures
/// from the data that run.json names if it is unchanged. Runs that kept no evaluation have none.
RunReport report_mistakes(const ReportedRuns& runs);

}  // namespace mylos::tasks
