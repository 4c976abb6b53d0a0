#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind for image classification.
const TaskKind& image_classification();

// Its parts, one file each.

/// Returns its options, which set its ImageConfig.
std::vector<Option<RunConfig>> image_options();

/// Plans a run of the model called `name` on the data set `data` or, if that is empty, on as many images as ImageNet
/// has. Errors: std::runtime_error if a file or directory does not exist, UsageError if a batch cannot be split over
/// the ranks.
PlannedRun plan_images(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                       const Notice& notice);

/// Copies the readable pictures of the data set `data`, unchanged, into the HDF5 file `output`. `notice` gets the
/// counts. Errors: std::runtime_error naming the file, UsageError if the name of `output` does not end in .h5.
void prepare_image_file(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                        const Notice& notice);

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
