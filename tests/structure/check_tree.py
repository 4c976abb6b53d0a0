"""Checks rules that the compiler does not: includes, names of vendors and options, lengths of files, and that sources are listed and tested.

    check_tree.py RULE ROOT      RULE: includes | kokkos | links | table | vendors | families | settings | lengths | sources | definitions | tests |
                             pip | recorded | limits | lab

Prints one line for each error. Exits with 1 if there is one.
"""

import pathlib
import re
import subprocess
import sys

# folder -> what its files may include beside their own folder: a folder "x", a folder with all folders below it "x/*", or a file.
# docs/architecture.md says what each folder holds. tests and bench may include everything.
ARROWS = {
    "core/base": "",
    "core/base/text": "core/base",
    "core/base/process": "core/base/text core/base",
    "core/base/files": "core/base/process core/base/text core/base",
    "core/base/options": "core/base/*",
    "core": "core/base/*",
    "core/kernels": "core core/base/*",
    "core/kernels/attention": "core/kernels core core/base/*",
    "core/kernels/norms": "core/kernels core core/base/*",
    "core/kernels/products": "core/kernels core core/base/*",
    "core/kernels/updates": "core/kernels core core/base/*",
    "core/kernels/gpu": "core/kernels/* core core/base/*",
    "core/kernels/cuda": "core/kernels/gpu core/kernels/* core core/base/*",
    "core/kernels/hip": "core/kernels/gpu core/kernels/* core core/base/*",
    "nn": "core core/base/* core/kernels/*",
    "nn/layers": "nn core core/base/* core/kernels/*",
    "nn/heads": "nn/layers nn core core/base/* core/kernels/*",
    "parallel/communicator": "core core/base/* core/kernels",
    "parallel/communicator/exchanges": "parallel/communicator core core/base/* core/kernels",
    "parallel/communicator/mpi": "parallel/communicator/exchanges parallel/communicator core core/base/* core/kernels",
    "parallel/communicator/nccl": "parallel/communicator/* core core/base/* core/kernels",
    "parallel/launch": "parallel/communicator/* core core/base/* core/kernels/*",
    "parallel/sharding": "parallel/launch parallel/communicator/* core core/base/* core/kernels/*",
    "parallel/planning": "parallel/sharding parallel/communicator/* core core/base/*",
    "parallel/checkpoint": "parallel/sharding parallel/launch parallel/communicator/* core core/base/*",
    "data/tokenizer": "core/base/*",
    "data/tokenizer/json": "data/tokenizer core/base/*",
    "data/jinja": "core/base/*",
    "data/huggingface": "data/tokenizer/* core/base/* core/numeric.hpp",
    "data/images": "core/base/* core/random.hpp",
    "data/squad": "data/huggingface data/tokenizer core/base/*",
    "data/text": "data/jinja data/tokenizer core/base/*",
    "families/interface": "data/huggingface data/tokenizer/* nn/* core/base/* core/kernels/*",
    "families/bert": "families/interface data/huggingface data/tokenizer/* nn/* core core/base/* core/kernels/*",
    "families/llama": "families/interface data/huggingface data/tokenizer nn/* core core/base/* core/kernels/*",
    "families/resnet": "families/interface data/huggingface nn/* core core/base/* core/kernels/*",
    "families": "families/* data/huggingface data/tokenizer/* core/base/*",
    "train/engine/samples": "nn parallel/* core core/base/* core/kernels/*",
    "train/engine": "train/engine/samples nn parallel/* core core/base/* core/kernels/*",
    "train/engine/selection": "train/engine/samples train/engine nn parallel/* core core/base/* core/kernels/*",
    "train/engine/memory": "train/engine/selection train/engine/samples train/engine nn parallel/* core core/base/* core/kernels/*",
    "train/engine/models": "train/engine/samples train/engine nn parallel/* core core/base/* core/kernels/*",
    "train/engine/loop": "train/engine/* nn parallel/* core core/base/* core/kernels/*",
    "train/planning": "train/engine/* parallel/* core core/base/*",
    "train/monitor": "train/engine/* parallel/* core core/base/*",
    "tasks/interface": "families families/interface data/huggingface data/tokenizer train/* nn core core/base/* core/kernels/*",
    "tasks/question_answering": "tasks/interface families/* train/* data/* nn/* core core/base/* core/kernels/*",
    "tasks/language_modeling": "tasks/interface families/* train/* data/* nn/* core core/base/* core/kernels/*",
    "tasks/image_classification": "tasks/interface families/* train/* data/* nn/* core core/base/* core/kernels/*",
    "tasks": "tasks/* families data/huggingface core/base/*",
    "app/options": "tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/program": "core/kernels/gpu app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/bench": "app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/doctor": "core/kernels/gpu app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/checkpoint": "app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/plan": "app/bench app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/batch": "app/plan app/bench app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/report": "app/batch app/bench app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/sweep": "app/plan app/report app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app/runs": "app/plan app/bench app/program app/options tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
    "app": "app/* tasks tasks/interface families/* train/* data/* nn/* parallel/* core/*",
}
# Folders that "x/*" leaves out.
NAMED_ONLY = {"core/kernels/cuda", "core/kernels/gpu", "core/kernels/hip"}
# Folders with C++ files.
TOPS = ["core", "data", "nn", "parallel", "train", "families", "tasks", "app", "bench", "tests"]
UNCHECKED = {"bench", "tests"}

# words -> the files that may contain them
VENDORS = {
    r"\bomp_\w+|#pragma\s+omp|\bomp\.h\b": r"core/device\.hpp",
    # CUDA's runtime, its driver, its keywords for functions and launches, and Kokkos' names for it
    r"\bcuda[A-Z_]\w*|\bCUDA\b|\bcu[A-Z][a-z]\w+|\bCU(?:result|device|context|stream|event)\b|\bcuda\.h\b"
    r"|__CUDA\w*|__global__|__device__|__shared__|<<<|\bKokkos::Cuda\w*|\bKOKKOS_ENABLE_CUDA\w*": r"core/(device|device_functions|gpu_runtime|rounding)\.hpp|core/kernels/(cuda|gpu|hip)/.*|parallel/communicator/nccl/nccl_(communicator\.cpp|(device|operations|library|streams)\.[ch]pp)",
    r"\bcublas[A-Z]\w*|\bCUBLAS\w*|\bcublas(Lt)?(_v2)?\.h\b": r"core/kernels/(cuda|gpu|hip)/.*",
    r"\bcudnn[A-Z]\w*|\bCUDNN_\w+|\bcudnn\.h\b": r"core/kernels/cuda/(cudnn_library\.hpp|(cudnn_library|cudnn_attention_graph|gemm_cudnn)\.cpp)",
    r"\bcudnn_(frontend|dlhandle)\b": r"core/kernels/cuda/cudnn_attention_graph\.cpp",
    # NCCL, except environment variables in texts, and names of files that contain "nccl"
    r"\bp?nccl[A-Z]\w*|(?<!\x22)\bNCCL_(?!DEBUG\b)\w+|\bnccl\.h\b": r"parallel/communicator/nccl/nccl_(communicator\.cpp|(device|operations|library|streams)\.[ch]pp)",
    r"\bnvml[A-Z]\w*|\bnvml\.h\b": r"train/monitor/nvml\.cpp",
    r"\brsmi_\w+|\bRSMI_\w+|\brocm_smi\.h\b": r"train/monitor/rocm_smi\.cpp",
    r"\bhip[A-Z]\w+|__HIP\w*|\bKOKKOS_ENABLE_HIP\w*|\bsycl::": r"core/(device|device_functions|gpu_runtime)\.hpp|core/kernels/hip/.*|core/kernels/gpu/gemm_cublaslt\.cpp|parallel/communicator/nccl/nccl_(library|version)\.hpp",
    r"\bdnnl\b": r"core/kernels/products/(convolution|gemm)_onednn\.[ch]pp",
    r"\bsentencepiece(?:::|_\w+\.h\b)": r"data/tokenizer/sentencepiece\.cpp",
    r"\bpcre2_\w+|\bPCRE2_\w+|\bpcre2\.h\b": r"data/tokenizer/json/regular_expression\.cpp",
    r"\bj(?:peglib|error)\.h\b|\bjpeg_\w+\(": r"data/images/decode_jpeg\.cpp",
    r"\bpng\.h\b|\bpng_\w+\(": r"data/images/(de|en)code_png\.cpp",
    r"\bzlib\.h\b|\bgz[a-z]+\(": r"data/images/idx_images\.cpp",
    # nlohmann's parser accepts any depth of nesting, which can overflow the stack; ours has a limit
    r"\b\w*[Jj]son::(?:parse|accept|sax_parse)\s*\(": r"core/base/files/json\.cpp",
    r"\bcxxopts\b|\bCXXOPTS_\w+": r"app/options/words\.cpp",
    r"\bKokkosBlas\b": r"core/kernels/products/gemm_kokkos_kernels\.cpp",
}

# words that name a model family or a data set, and the files that may contain them: engine, tasks and commands know no family
FAMILIES = {
    r"(?i)squad": r"(families/bert/|families/\w+\.|data/|tasks/|bench/|tests/).*",
    r"(?i)bert": r"(families/bert/|families/\w+\.|data/|bench/|tests/).*",
    r"(?i)llama|mistral|qwen": r"(families/llama/|families/\w+\.|data/|bench/|tests/).*",
    r"(?i)wordpiece|sentencepiece": r"(families/|data/|bench/|tests/).*",
    r"(?i)resnet": r"(families/resnet/|families/\w+\.|data/|bench/|tests/).*",
}

# The engine names settings, and app spells them as options. Texts of the engine may contain "--" only in options of other programs,
# and in words that are no options.
ENGINE = {"core", "data", "nn", "parallel", "train", "families"}
OTHER_PROGRAMS = {
    "core/base/files/download.cpp": r"proto(-default|-redir)?|max-filesize|fail|silent|show-error|location|connect-timeout|speed-(limit|time)"
    r"|retry|write-out|dump-header|output|header",  # curl
    "core/base/options/option.cpp": r"",  # "--{}" in the table of options itself
    "core/base/process/processors.cpp": r"cpus-per-task|bind-to|map-by",  # srun, mpirun
    "core/kernels/gpu/device_obstacle.cpp": r"gpus-per-task",  # srun
    "data/huggingface/fetch.cpp": r"hash|only-binary|require-hashes|no-deps|quiet|disable-pip-version-check|retries|timeout|dest|requirement"  # pip
    r"|extract|gzip|file|directory|strip-components|no-same-(owner|permissions)|",  # tar, whose file arguments follow "--"
    "families/model_directory.cpp": r"",  # replaces a slash in names of directories
    "data/text/pgn_documents.cpp": r"",  # a null move of chess
    "parallel/launch/launch.cpp": r"ntasks-per-node|gpus-per-node",  # srun
    "parallel/launch/launch_remarks.cpp": r"ntasks-per-node|ppn|map-by",  # srun, mpiexec, mpirun
    "parallel/launch/launcher.cpp": r"mpi|signal",  # srun, scancel
}

# Tests of app that include no header of Kokkos. Their program links it, unlike the programs WITHOUT_KOKKOS.
INCLUDE_NO_KOKKOS = [
    *(f"tests/app/options/test_{name}.cpp" for name in ("command_lines", "commands", "parse", "task_choice", "words")),
    *(f"tests/app/report/test_{name}.cpp" for name in ("curve", "html", "svg_chart", "watch_gpus")),
]

# generated by CMake, so not in the tree
GENERATED = {"mylos_commit.hpp"}

TARGET = r"\b(?:\w+::\w+|mylos_\w+)"  # of CMake
MAXIMUM_LINES = 500
MOST_RECORDED_BYTES = 8 << 20
LEAST_LIMIT = 600  # seconds; hang_limit of tests/support/waiting.hpp


def sources(root):
    """Yields the C++ files of our folders as paths from the root."""
    for folder in TOPS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".hpp", ".cpp"}:
                yield path.relative_to(root)


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def may_include(folder, target):
    """Returns whether files of a folder may include the file `target`."""
    own = target.rsplit("/", 1)[0]
    allowed = ARROWS[folder].split()
    within = own not in NAMED_ONLY and any(way.endswith("/*") and (own + "/").startswith(way[:-1]) for way in allowed)
    return own == folder or own in allowed or target in allowed or within


def check_includes(root):
    for path in sources(root):
        text = (root / path).read_text()
        if path.suffix == ".hpp" and not re.search(r"^#pragma once$", text, re.MULTILINE):
            yield f"{path}: has no #pragma once"
        if "fmt::join(" in text and "#include <fmt/ranges.h>" not in text:
            yield f"{path}: fmt::join needs <fmt/ranges.h>, where it is from fmt 11 on"
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match or match.group(1) in GENERATED:
                continue
            target = match.group(1)
            folder = path.parent.as_posix()
            if not (root / target).is_file():
                yield f'{path}:{number}: "{target}" is not a file from the root of the tree'
            elif path.parts[0] in UNCHECKED:
                continue
            elif folder not in ARROWS:
                yield f"{path}: {folder} has no line in the table of folders (ARROWS in check_tree.py)"
                break
            elif not may_include(folder, target):
                yield f"{path}:{number}: {folder} must not include {target}"


def way_to_kokkos(root, source, with_sources):
    """Returns the includes from `source` to a header of Kokkos; with_sources: also from the .cpp file of each header. Empty if none."""
    ways, seen = [[source]], {source}
    for way in ways:
        for mark, target in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)', (root / way[-1]).read_text(), re.MULTILINE):
            if mark == "<" and target.startswith("Kokkos"):
                return [*way, target]
            beside = [target, target.removesuffix(".hpp") + ".cpp"] if with_sources else [target]
            for file in beside:
                if mark == '"' and file not in seen and (root / file).is_file():
                    seen.add(file)
                    ways.append([*way, file])
    return []


def cmake_lists(root):
    """Returns the text of each CMakeLists.txt of our folders without comments, by its folder from the root."""
    return {path.parent.relative_to(root): re.sub(r"#.*", "", path.read_text())
            for folder in TOPS for path in sorted((root / folder).rglob("CMakeLists.txt"))}


def links(lists):
    """Returns the targets that each target of `lists` links."""
    linked = {}
    for text in lists.values():
        for name, words in re.findall(r"\b(?:mylos_folder|target_link_libraries)\(\s*([\w/]+)([^)]*)\)", text):
            name = name.replace("/", "_")
            linked.setdefault(name if name.startswith("mylos_") else f"mylos_{name}", []).extend(re.findall(TARGET, words))
    return linked


def reached(linked, targets):
    """Returns `targets` and all that they link."""
    for target in targets:
        targets += [more for more in linked.get(target.replace("::", "_"), []) if more not in targets]
    return targets


def check_links(root):
    """Checks that folders link, directly or through others, those whose headers their sources include. Only a build without units of
    several folders, such as the presets debug and fuzz, fails without them, and CI has none."""
    lists = cmake_lists(root)
    linked = links(lists)
    folders = {pathlib.PurePath(folder) for text in lists.values() for folder in re.findall(r"\bmylos_folder\(\s*([\w/]+)", text)}

    def library(path):
        folder = next((parent for parent in path.parents if parent in folders), None)
        return folder and f"mylos::{folder.as_posix().replace('/', '_')}"

    for path in sources(root):
        own = library(path)
        targets = reached(linked, [own]) if own else []
        for file in re.findall(r'^#include "([^"]+)"', (root / path).read_text(), re.MULTILINE) if own else []:
            needed = library(pathlib.PurePath(file))
            if needed and needed not in targets:
                yield f"{path}: {own} links no {needed}, whose {file} it includes"


def check_kokkos(root):
    """Checks that programs WITHOUT_KOKKOS neither include nor link Kokkos, and that the tests of INCLUDE_NO_KOKKOS do not include it."""
    tests = {test: False for test in INCLUDE_NO_KOKKOS}
    lists = cmake_lists(root)
    linked, has_program = links(lists), False
    for folder, text in lists.items():
        for name, words in re.findall(r"\bmylos_tests\(\s*(\w+)([^)]*)\)", text):
            if "WITHOUT_KOKKOS" not in words.split():
                continue
            has_program = True
            tests |= {(folder / source).as_posix(): True for source in re.findall(r"\S+\.cpp\b", words)}
            targets = reached(linked, [*re.findall(TARGET, words), "mylos_test_main"])
            if any(target.startswith("Kokkos::") for target in targets):
                yield f"{folder}/CMakeLists.txt: test_{name} links Kokkos, through {', '.join(targets)}"
    if not has_program:
        yield "tests: no program is WITHOUT_KOKKOS"
    for test, with_sources in tests.items():
        if not (root / test).is_file():
            yield f"{test}: does not exist"
        elif way := way_to_kokkos(root, test, with_sources):
            yield f"{test}: reaches Kokkos: {' > '.join(way[1:])}"


def check_vendors(root):
    for path in sources(root):
        if path.parts[0] in UNCHECKED:
            continue
        text = without_comments((root / path).read_text())
        for word, allowed in VENDORS.items():
            found = re.search(word, text)
            if found and not re.fullmatch(allowed, path.as_posix()):
                yield f"{path}: names {found.group(0)}; only {allowed} may"


def check_families(root):
    """Checks that shared files name no model family, also in texts and comments, which would be wrong for other families."""
    for path in sources(root):
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            # Tasks describe other programs, and give examples of models.
            words = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line) if path.parts[0] == "tasks" else line
            for word, allowed in FAMILIES.items():
                found = re.search(word, words)
                if found and not re.fullmatch(allowed, path.as_posix()):
                    yield f"{path}:{number}: names {found.group(0)}; only files of {allowed} may"


def strings(text):
    """Yields line and content of each string literal. Adjacent literals are separate."""
    tokens = r"""//[^\n]*|/\*.*?\*/|R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<plain>(?:[^"\\\n]|\\.)*)"|(?<!\w)'(?:[^'\\\n]|\\.)*'"""
    for match in re.finditer(tokens, text, re.DOTALL):
        content = match["plain"] if match["raw"] is None else match["raw"]
        if content is not None:
            yield text.count("\n", 0, match.start()) + 1, content


def option_names(root):
    """Yields the names in the tables of options: those of all tasks, of each task, and of each kind of optimizer."""
    for path in sources(root):
        if path.parent == pathlib.PurePath("app/options") or (path.parts[0] == "tasks" and path.stem.endswith("_options")):
            yield from re.findall(r'\b(?:named|own)\(\s*"([a-z][\w-]*)",', (root / path).read_text())
        if path.as_posix() == "nn/optimizer_kinds.cpp":
            yield from re.findall(r'\{"([a-z][\w-]*)", [\d.e-]+,', (root / path).read_text())


def check_settings(root):
    """Checks that texts of the engine spell no option. They use setting("micro-batch"), which must be the name of an option."""
    options = set(option_names(root))
    for path in sources(root):
        if path.parts[0] not in ENGINE:
            continue
        text = (root / path).read_text()
        allowed = OTHER_PROGRAMS.get(path.as_posix())
        for number, content in strings(text):
            for name in re.findall(r"(?<![\w-])--(?=[a-z{]|$)([a-z][a-z0-9-]*)?", content):
                if allowed is None or not re.fullmatch(allowed, name):
                    shown = name or "..."
                    yield f'{path}:{number}: spells the option --{shown}; write setting("{shown}") of core/base/setting_error.hpp'
        for match in re.finditer(r'\b(?:setting|SettingError)\(\s*"([^"]*)"', text):
            if match[1] not in options:
                yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: names the setting {match[1]}, and no table of options has it"


def check_lengths(root):
    for path in sources(root):
        lines = len((root / path).read_text().splitlines())
        if lines > MAXIMUM_LINES:
            yield f"{path}: {lines} lines; split it ({MAXIMUM_LINES} is the most)"


def check_sources(root):
    """Checks that a CMakeLists.txt above each .cpp lists it; otherwise it would never be compiled."""
    for path in sources(root):
        if path.suffix != ".cpp":
            continue
        lists = [root / parent / "CMakeLists.txt" for parent in path.parents]
        text = "".join(file.read_text() for file in lists if file.is_file())
        # A list that chooses between files of one family may contain only the stem.
        if path.name not in text and path.stem.removeprefix("gemm_") not in text:
            yield f"{path}: no CMakeLists.txt lists it"


def check_definitions(root):
    """Checks that CMake passes texts to sources in headers written by configure_file, because nvcc_wrapper drops spaces from compile
    definitions. tests/ is left out, because its definitions are file names."""
    for folder in sorted({*TOPS, "cmake"} - {"tests"}):
        for path in [*(root / folder).rglob("CMakeLists.txt"), *(root / folder).rglob("*.cmake")]:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if re.search(r'\w=\\"', line):
                    yield f"{path.relative_to(root)}:{number}: a compile definition has a text; write it into a header with configure_file"


def check_table(root):
    """Checks that the table of docs/architecture.md has a row for each folder of ARROWS, and no others."""
    rows = set(re.findall(r"^\| `([\w/]+)/` \|", (root / "docs/architecture.md").read_text(), re.MULTILINE))
    yield from (f"docs/architecture.md: has no row for `{folder}/`" for folder in ARROWS if folder not in rows)
    yield from (f"docs/architecture.md: `{folder}/` is not a folder of check_tree.py" for folder in sorted(rows - ARROWS.keys()))


def check_tests(root):
    """Checks that tests mirror the tree: <folder>/<file>.cpp is tested by tests/<folder>/test_<file>.cpp, or the CMakeLists.txt of the
    tests names the test that covers it, in a line "# <folder>/<file>: test_other, ..."."""
    for path in sources(root):
        if path.parts[0] in UNCHECKED or path.suffix != ".cpp":
            continue
        folder, stem = path.parent, path.stem
        if (root / "tests" / folder / f"test_{stem}.cpp").is_file():
            continue
        lists = root / "tests" / path.parts[0] / "CMakeLists.txt"
        text = lists.read_text() if lists.is_file() else ""
        said = re.search(rf"^# {re.escape(folder.as_posix())}/(?:\S+, )*{re.escape(stem)}(?:, \S+)*: (.*)$", text, re.MULTILINE)
        if said is None:
            yield f"{path}: has no tests/{folder}/test_{stem}.cpp, and {lists.relative_to(root)} does not say which test covers it"
            continue
        for test in said.group(1).split(", "):
            if not list((root / "tests").rglob(f"{test}.*")):
                yield f"{lists.relative_to(root)}: {folder}/{stem} is covered by {test}, which is not there"


def check_pip(root):
    """Checks that scripts and the laboratory call pip in isolated mode, with wheels or pinned checksums only. pip would run the code of
    source distributions before their checksums are known, and Python without -I would import a pip.py of the working directory."""
    for path in sorted([*(root / "scripts").rglob("*"), *(root / "lab").rglob("*")]):
        if not path.is_file():
            continue
        text = path.read_text(errors="replace").replace("\\\n", " ")
        commands = re.findall(r"[^\n]*\bpip\"? +(?:install|download)\b[^\n]*", text)
        if path.suffix == ".py":  # the command is a list of words
            lists = re.findall(r"\[[^][]*\"pip\"[^][]*\]", text)
            commands += [re.sub(r"[\[\]\",]", " ", words) for words in lists]
        for command in map(lambda found: " ".join(found.split()), commands):
            if not re.search(r" -I -m pip ", command) or not re.search(r"--only-binary=:all:|--require-hashes", command):
                yield f"{path.relative_to(root)}: {command}: needs -I -m pip, and --only-binary=:all: or --require-hashes"


def check_lab(root):
    """Checks that product, tests and scripts do without lab/, which only comments, the documentation and CI name."""
    comment = r'//[^\n]*|/\*.*?\*/|(?<!\S)#[^\n]*|""".*?"""'
    for folder in [*TOPS, "cmake", "jobscripts", "scripts"]:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root).as_posix()
            if path.suffix not in {".cmake", ".cpp", ".hpp", ".py", ".sh", ".txt", ""} or not path.is_file() or inside.startswith(("tests/docs/", "tests/structure/")):
                continue
            if found := re.search(r"\blab/[\w-]*", re.sub(comment, "", path.read_text(errors="replace"), flags=re.DOTALL)):
                yield f"{inside}: names {found[0]}; nothing but comments may, the product has to work without the laboratory"


def check_limits(root):
    """Checks that no limit of a test is about speed: a wait in seconds, or a limit below the one that only ends what hangs."""
    waits = re.compile(r"\bTIMEOUT\s+(\d+)|(?<!-)\btimeout=(\d+)|now\(\) \+ (?:std::chrono::)?(?:seconds|minutes)\((\d+)\)")
    files = [path for folder in ("cmake", "tests") for path in (root / folder).rglob("*") if path.suffix in {".cmake", ".cpp", ".hpp", ".py", ".txt"}]
    for path in sorted(files):
        text = path.read_text(errors="replace")
        for found in waits.finditer(text):
            if int(next(filter(None, found.groups()))) < LEAST_LIMIT and not path.name.startswith("test_check_"):
                yield (f"{path.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}: {' '.join(found[0].split())} may fail on a slow "
                       "machine; leave it to ctest, or use tests/support/waiting.hpp")


def check_recorded(root):
    """Checks the size of recorded values, which are part of every clone."""
    total = sum(path.stat().st_size for path in (root / "tests/golden").rglob("*") if path.is_file())
    if total > MOST_RECORDED_BYTES:
        yield f"tests/golden: {total / 2**20:.1f} MiB; {MOST_RECORDED_BYTES / 2**20:.0f} are the most, larger recordings lie outside the tree"


def main(rule, root):
    check = {"includes": check_includes, "kokkos": check_kokkos, "links": check_links, "vendors": check_vendors, "families": check_families,
             "settings": check_settings, "lengths": check_lengths, "sources": check_sources,
             "definitions": check_definitions, "pip": check_pip, "recorded": check_recorded, "limits": check_limits, "table": check_table,
             "tests": check_tests, "lab": check_lab}[rule]
    breaches = list(check(pathlib.Path(root)))
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
