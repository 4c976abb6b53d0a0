"""Writes the results of a validation as one JSON file and one page of tables."""

import json

PRECISIONS = ["float", "bfloat16", "half"]


def table(head, rows):
    line = lambda cells: "| " + " | ".join(str(cell) for cell in cells) + " |"
    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)]) if rows else "Nothing was measured."


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def gib(size):
    return "-" if size is None else f"{size / 2**30:.2f}"


def conditions(report):
    target = report["target"]
    gpu = target.get("gpu")
    lines = [f"- GPU: {gpu['name']}, {gpu['memory_mib']} MiB, driver {gpu['driver']}" if gpu else
             "- GPU: none; the build for the CPU stood in for the one for GPUs, on small sizes. No figure here is of a GPU."]
    build = target["build"]
    lines += [f"- program: {build['version']}, commit {build['commit']}, {build['compiler']}, Kokkos {build['kokkos']} ({build['kokkos_backend']})",
              f"- CUDA toolkit: {target['cuda_toolkit'] or 'none on the path'}; built with {report['manifest'].get('cuda') or 'none'}",
              f"- {target['cpus']} CPUs, {target['cpu']}; {target['system']}; Python {target['python']}"]
    if report["versions"]:
        lines.append(f"- PyTorch {report['versions']['torch']} (CUDA {report['versions']['cuda']}), transformers {report['versions']['transformers']}")
    lines.append(f"- {report['date']}, {report['seconds']:.0f} s in all")
    return "\n".join(lines)


def rows(report, name):
    return [row for row in report["figures"] if row["table"] == name]


def tests_section(report):
    return table(["program", "passed", "failed", "skipped", "left out"],
                 [[row["program"], row["passed"], row["failed"], row["skipped"], row["left out"]] for row in rows(report, "tests")])


def agreement_section(report):
    return table(["agreement", "steps", "largest relative difference", "bound"],
                 [[row["what"], row["steps"], f"{row['difference']:.1e}", f"{row['bound']:.0e}"] for row in rows(report, "agreement")])


def ranks_section(report):
    losses = table(["ranks", "steps", "largest relative difference", "bound"],
                   [[row["what"], row["steps"], f"{row['difference']:.1e}", f"{row['bound']:.0e}"] for row in rows(report, "ranks")])
    memory = table(["mode", "ranks", "GiB over MPI", "GiB over NCCL", "MiB of NCCL a rank"],
                   [[row["mode"], row["ranks"], gib(row["before"]), gib(row["after"]), f"{row['of_a_rank'] / 2**20:.0f}"] for row in rows(report, "connections")])
    how = "".join(f"Ranks over NCCL share the GPU by {row['how']}.\n\n" for row in rows(report, "sharing"))
    return f"{how}{losses}\n\n### Memory of connections\n\n{memory}"


def doctor_section(report):
    found = [row for row in rows(report, "doctor") if row["level"] != "ok"]
    return "\n".join(f"- {row['level']}: {row['name']}: {row['text']}" for row in found) or "No warnings."


def sanitizer_section(report):
    counts = {}
    for check in report["checks"]:
        if check["part"] == "checks of CUDA":
            kind = " ".join(check["name"].split()[:2]).removesuffix(",")
            passed, all_of = counts.get(kind, (0, 0))
            counts[kind] = (passed + check["passed"], all_of + 1)
    return table(["check", "passed", "of"], [[kind, passed, all_of] for kind, (passed, all_of) in counts.items()])


def failures(report):
    """Returns a line for each check that failed, with the command that repeats it."""
    again = lambda check: f"; repeat with `{check['repeat']}`" if "repeat" in check else ""
    failed = [f"- {check['part']}: {check['name']}: {check['detail']}{again(check)}" for check in report["checks"] if not check["passed"]]
    return "## Failed\n\n" + ("\n".join(failed) if failed else f"None of {len(report['checks'])} checks.")


def timing_section(report):
    parts = ["Peaks, the fastest product of many tokens: " +
             (", ".join(f"{row['precision']} {row['gflops'] / 1000:.1f} TFLOP/s" for row in rows(report, "peaks")) or "not measured") + ".",
             table(["model", "precision", "attention", "batch", "amount", "ms a step", "rate", "TFLOP/s", "of the peak", "idle at least"],
                   [[row["model"], row["precision"], row["attention"] or "-", row["batch"], f"{row['amount']:.0f} {row['unit']}", f"{1000 * row['seconds']:.1f}",
                     f"{row['rate']:.0f} {row['unit']}/s", f"{row['gflops'] / 1000:.2f}", percent(row.get("share_of_peak")),
                     percent(row["idle_share_at_least"])] for row in rows(report, "steps")]),
             table(["model", "precision", "attention", "planned GiB", "taken GiB", "tokens/s", "busy, by nvidia-smi"],
                   [[row["model"], row["precision"], row["attention"], gib(row["planned"]), gib(row["taken"]), f"{row['tokens_per_second']:.0f}", percent(row["busy"])]
                    for row in rows(report, "memory")])]
    for row in rows(report, "steps"):
        parts.append(f"### Kernels of a step: {row['model']}, {row['precision']}, attention {row['attention'] or '-'}\n\nTriad: {row['gbytes_per_second_ceiling']:.0f} GB/s.\n\n" +
                     kernel_table([kernel for kernel in rows(report, "kernels")
                                   if all(kernel[key] == row[key] for key in ("model", "precision", "attention"))]))
    parts += ["### Kernels that move bytes\n\n" + traffic_table(report), "### Attention\n\n" + attention_table(rows(report, "attention"))]
    parts.append("### Products\n\n" + table(
        ["shapes", "product", "m", "n", "k", "precision", "provider", "ms", "TFLOP/s", "of the peak"],
        [[row["shapes"], row["product"], row["m"], row["n"], row["k"], row["precision"], row["provider"], f"{1000 * row['seconds']:.3f}",
          f"{row['gflops'] / 1000:.2f}", percent(row.get("share_of_peak"))] for row in rows(report, "products")]))
    return "\n\n".join(parts)


def kernel_table(kernels):
    number = lambda value, format: "-" if value is None else format.format(value)
    return table(["kernel", "calls", "ms", "of the step", "GB/s", "TFLOP/s", "of the roofline"],
                 [[row["name"], f"{row['calls']:.0f}", f"{1000 * row['seconds']:.3f}", percent(row["share_of_step"]),
                   number(row.get("gbytes_per_second"), "{:.0f}"), number(row.get("gflops") and row["gflops"] / 1000, "{:.2f}"),
                   percent(row.get("share_of_roofline"))] for row in kernels])


def traffic_table(report):
    """Compares kernels with a copy of as many bytes. "over" is the time of all launches beyond that of their bytes at the largest copy's rate."""
    copies = ", ".join(f"{row['bytes'] / 1e6:.0f} MB {row['gbytes_per_second']:.0f} GB/s ({row['precision']})" for row in rows(report, "copies"))
    return f"Copies: {copies or 'not measured'}. *As asked* is no check: it counts neither as passed nor as failed.\n\n" + table(
        ["kernel", "precision", "launches", "MB", "us", "GB/s", "of a copy", "us over", "as asked"],
        [[row["kernel"], row["precision"], row["launches"], f"{row['bytes'] / 1e6:.1f}", f"{1e6 * row['seconds']:.1f}", f"{row['gbytes_per_second']:.0f}",
          percent(row["share_of_copy"]), f"{1e6 * row['over_seconds']:.1f}", "yes" if row["as_asked"] else "no"] for row in rows(report, "traffic")])


def attention_table(found):
    cell = lambda row, name: [f"{1000 * row[name]['seconds']:.3f}", f"{row[name]['gflops'] / 1000:.2f}"]
    return table(["model", "kernel", "precision", "dropout", "forward ms", "TFLOP/s", "backward ms", "TFLOP/s"],
                 [[row["model"], row["kernel"], row["precision"], f"{row['dropout']:.2g}", *cell(row, "forward"), *cell(row, "backward")] for row in found])


def beside_attention_table(found):
    milliseconds = lambda row, name: f"{1000 * row[name]:.3f}"
    return table(["model", "precision", "who", "forward ms", "backward ms", "ours over theirs, forward", "backward", "both"],
                 [[row["model"], row["precision"], row["who"], milliseconds(row, "forward"), milliseconds(row, "backward"),
                   *(f"{row['ours_over_theirs'][name]:.2f}" if "ours_over_theirs" in row else "" for name in ("forward", "backward", "both"))]
                  for row in found])


def beside_section(report):
    ratio = lambda row, name: f"{row[name]:.2f}" if name in row else ""
    note = lambda row: "" if row.get("losses_agree", True) else "; its losses are not ours"
    steps = table(["model", "precision", "batch", "who", "rate", "ours over theirs", "GiB taken", "ours over theirs"],
                 [[row["model"], row["precision"], row["batch"], row["who"] + note(row), f"{row['rate']:.0f} {row['unit']}",
                   ratio(row, "ours_over_theirs"), gib(row.get("memory")), ratio(row, "memory_ours_over_theirs")] for row in rows(report, "beside")])
    return (f"{steps}\n\n### Attention\n\nOver the same lengths, without dropout, which PyTorch's function for sequences of several lengths lacks. Ratios "
            f"are of speeds.\n\n{beside_attention_table(rows(report, 'beside attention'))}")


def markdown(report):
    parts = [f"# Validation on {report['target'].get('gpu', {}).get('name') or 'the CPU, a dry run'}", conditions(report), failures(report)]
    sections = {"doctor": ("Doctor", doctor_section), "agreement": ("Agreement", agreement_section), "tests": ("Tests", tests_section),
                "sanitize": ("Checks of CUDA", sanitizer_section), "ranks": ("Ranks", ranks_section), "time": ("Time", timing_section),
                "compare": ("Beside PyTorch", beside_section)}
    for part in report["parts"]:
        title, section = sections[part]
        parts.append(f"## {title}\n\n{section(report)}")
    if report["left_out"]:
        parts.append("## Left out\n\n" + "\n".join(f"- {entry['part']}: {entry['name']}: {entry['why']}" for entry in report["left_out"]))
    return "\n\n".join(parts) + "\n"


def calibrations(report):
    """Returns the files for `mylos plan --bench`: for each model and precision, {name: calibration of the fastest step}."""
    fastest = sorted(rows(report, "steps"), key=lambda row: row["rate"])
    return {f"step-{row['model'].lower()}-{row['precision']}": {"calibration": row["calibration"]} for row in fastest}


def write(report, folder, name):
    """Writes all files. Returns their paths, with those of the report first."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.json", folder / f"{name}.md"]
    paths[0].write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    paths[1].write_text(markdown(report), encoding="utf-8")
    files = {step: json.dumps(calibration, indent=1) + "\n" for step, calibration in calibrations(report).items()}
    files |= {"cudnn-device": row["description"] for row in rows(report, "cudnn device")}
    for file, text in files.items():
        paths.append(folder / f"{name}-{file}.json")
        paths[-1].write_text(text, encoding="utf-8")
    return paths
