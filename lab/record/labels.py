"""Labels the answer in a window like run_qa's prepare_train_features; also used by bench/peers."""


def label(offsets, sequence_ids, answers):
    """Returns the labels of prepare_train_features in run_qa.py for one window; [CLS] is at 0."""
    if not answers["answer_start"] or 1 not in sequence_ids:
        return 0, 0
    start_char = answers["answer_start"][0]
    end_char = start_char + len(answers["text"][0])
    start = sequence_ids.index(1)
    end = len(sequence_ids) - 1
    while sequence_ids[end] != 1:
        end -= 1
    if not (offsets[start][0] <= start_char and offsets[end][1] >= end_char):
        return 0, 0
    while start < len(offsets) and offsets[start][0] <= start_char:
        start += 1
    while offsets[end][1] >= end_char:
        end -= 1
    return start - 1, end + 1
