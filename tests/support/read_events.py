"""Prints as JSON what the Python package of TensorBoard reads from the runs below a directory, as its pages show it.

    read_events.py DIRECTORY

{"scalars": {run: {tag: [[step, value], ...]}}, "hyperparameters": [name, ...], "metrics": [tag, ...],
 "sessions": {run: {"status": "STATUS_SUCCESS", "hyperparameters": {name: value}, "metrics": {tag: value}}}}
"""

import json
import logging
import sys

from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.data import provider
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

ALL = provider.RunTagFilter()


def read_scalars(data, context):
    found = data.read_scalars(context, experiment_id="", plugin_name="scalars", downsample=100000, run_tag_filter=ALL)
    return {run: {tag: [[datum.step, datum.value] for datum in series] for tag, series in tags.items()} for run, tags in found.items()}


def value_of(message):
    return getattr(message, message.WhichOneof("kind"))


def read_sessions(backend, context, experiment):
    columns = [api_pb2.ColParams(hparam=info.name, include_in_result=True) for info in experiment.hparam_infos]
    columns += [api_pb2.ColParams(metric=info.name, include_in_result=True) for info in experiment.metric_infos]
    request = api_pb2.ListSessionGroupsRequest(
        allowed_statuses=list(api_pb2.Status.values()), col_params=columns, slice_size=100, include_metrics=True)
    groups = list_session_groups.Handler(context, backend, "", request).run().session_groups
    return {
        session.name: {
            "status": api_pb2.Status.Name(session.status),
            "hyperparameters": {name: value_of(value) for name, value in group.hparams.items()},
            "metrics": {metric.name.tag: metric.value for metric in session.metric_values},
        } for group in groups for session in group.sessions
    }


def main(directory):
    logging.disable()
    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 100000})
    multiplexer.AddRunsFromDirectory(directory)
    multiplexer.Reload()
    data = data_provider.MultiplexerDataProvider(multiplexer, directory)
    context = RequestContext()
    backend = backend_context.Context(base_plugin.TBContext(data_provider=data, logdir=directory))
    experiment = backend.experiment_from_metadata(
        context, "", True, backend.hparams_metadata(context, ""), backend.hparams_from_data_provider(context, "", 100))
    json.dump({
        "scalars": read_scalars(data, context),
        "hyperparameters": [info.name for info in experiment.hparam_infos],
        "metrics": [info.name.tag for info in experiment.metric_infos],
        "sessions": read_sessions(backend, context, experiment),
    }, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
