"""Checks that links, files, commands and options in the documentation exist.

    check_docs.py RULE ROOT [PROGRAM]    RULE: links | paths | messages | questions | size | options PROGRAM | table PROGRAM
    check_docs.py write ROOT PROGRAM     regenerates the tables of docs/training-options.md

Prints one line for each error. Exits with 1 if there is one.
"""

import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys

FOLDERS = "app|bench|cmake|container|core|data|docs|examples|families|jobscripts|lab|nn|parallel|scripts|spack|spack_repo|tasks|tests|train|\\.ci"
PATH = re.compile(rf"(?<![\w./<$~-])((?:{FOLDERS})/[\w./*<>{{}}-]*)")
OPTION = re.compile(r"(?<![\w-])--([a-z][\w-]*)")
SPAN = re.compile(r"`([^`\n]+)`")
# Options of every command, which the help of a command does not list.
ALWAYS = {"help", "version"}


# What a user has to read: pages of docs/ without the generated one of options, words of these and README.md, and lines of single files.
MOST_PAGES, MOST_WORDS = 22, 34_000
LINES = {"README.md": (80, 100), "CHANGELOG.md": (40, 60), "docs/performance.md": (100, 130), "docs/gpu.md": (120, 150)}
GENERATED = "docs/training-options.md"


def pages(root):
    own = (root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", "lab/README.md"))
    return [path for path in [*own, *sorted((root / "docs").glob("*.md")), *sorted((root / "lab/results").glob("*.md"))] if path.is_file()]


def lines(page):
    """Yields number and text of each line. A line that ends in \\ is joined with the next one."""
    begun, text = 0, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        begun = begun or number
        if line.endswith("\\"):
            text += line[:-1]
            continue
        yield begun, text + line
        begun, text = 0, ""


def anchors(page):
    """Yields the anchors that GitHub gives to the headings of a page."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            yield re.sub(r"[^\w -]", "", line.lstrip("#").strip().lower()).replace(" ", "-")


def check_links(root):
    for page in pages(root):
        for number, line in lines(page):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                file = page.parent / path if path else page
                if not file.exists():
                    yield f"{page.relative_to(root)}:{number}: links to {target}, which is not there"
                elif anchor and anchor not in anchors(file):
                    yield f"{page.relative_to(root)}:{number}: links to {target}, but {file.name} has no such heading"


def source_strings(root):
    """Returns the string literals of the sources, one per line. Adjacent literals are joined."""
    text = ""
    for folder in ("app", "core", "data", "families", "nn", "parallel", "tasks", "train"):
        for source in sorted((root / folder).rglob("*.[ch]pp")):
            text += re.sub(r'"\s*\n\s*"', "", source.read_text(encoding="utf-8"))
    return "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)).replace('\\"', '"').replace("\\n", "")


def is_known_message(part, known):
    """Returns whether a message contains this part. Messages of the engine name an option by setting("its-name")."""
    if part in known:
        return True
    texts, names = OPTION.split(part)[::2], OPTION.findall(part)
    return all(text.strip() in known for text in texts) and set(names) <= set(known.split("\n"))


def check_messages(root):
    """Checks that the sources contain the messages of tables whose first column is called message. ... matches anything."""
    known = source_strings(root)
    for page in pages(root):
        inside = False
        for number, line in lines(page):
            inside = line.startswith("|") and (inside or line.startswith("| message |"))
            for span in SPAN.findall(line.split(" | ")[0]) if inside else ():
                missing = [part for part in map(str.strip, span.split("...")) if not is_known_message(part, known)]
                yield from (f"{page.relative_to(root)}:{number}: no message says '{part}'" for part in missing)


def is_a_file_name(path):
    """Returns whether a path names a file, unlike train/loss, which is a name in TensorBoard, or gemm_<name>.cpp."""
    named = path.endswith("/") or "." in path.rsplit("/", 1)[-1] or re.match(r"scripts/|\.ci/|bench/|lab/", path)
    return named and not re.search(r"[<>{}]", path)


def check_paths(root):
    for page in pages(root):
        for number, line in lines(page):
            for path in PATH.findall(line):
                path = path.rstrip(".") if path.endswith(".") else path
                if is_a_file_name(path) and not any(root.glob(path.rstrip("/"))):
                    yield f"{page.relative_to(root)}:{number}: names {path}, which is not there"


def check_size(root):
    read = [root / "README.md", *sorted(path for path in (root / "docs").glob("*.md") if path != root / GENERATED)]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in read}
    words = sum(len(text.split()) for text in texts.values())
    if len(texts) - 1 > MOST_PAGES:
        yield f"docs: {len(texts) - 1} pages; {MOST_PAGES} are the most: join two"
    if words > MOST_WORDS:
        yield f"docs: {words:,} words; {MOST_WORDS:,} are the most: leave out what only its author needs, or move it to lab/results"
    for name, (least, most) in LINES.items():
        found = len((root / name).read_text(encoding="utf-8").splitlines())
        if not least <= found <= most:
            yield f"{name}: {found} lines; {least} to {most} are wanted"
    for page, text in texts.items():
        if page != "README.md" and not re.match(r"# .*\n\nWith ", text):
            yield f"{page}: does not begin with what a reader can do: With this page you can ..."


def sections(page):
    """Returns {heading: text up to the next heading}. Words are separated by single spaces."""
    parts = re.split(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {heading: " ".join(text.split()) for heading, text in zip(parts[1::2], parts[2::2])}


def check_questions(root):
    """Checks that each question of a person at a site is answered where tests/docs/questions.json says."""
    for row in json.loads((root / "tests/docs/questions.json").read_text(encoding="utf-8")):
        page = root / row["page"]
        found = sections(page) if page.is_file() else {}
        if row["heading"] not in found:
            yield f"{row['page']}: has no heading '{row['heading']}', which answers: {row['question']}"
        elif row["answer"] not in found[row["heading"]]:
            yield f"{row['page']}: '{row['heading']}' does not say '{row['answer']}', which answers: {row['question']}"


class Program:
    """The output of `mylos --help` and `mylos COMMAND --help`."""

    def __init__(self, path):
        self.path = path
        self.commands = {name: self.help(name) for name in re.findall(r"^  (\w+) ", self.run("--help"), re.MULTILINE)}
        self.commands["help"] = self.run("--help")
        # A command with --task also shows the options of the given task.
        words = re.search(r"--task\) values=\"([^\"]*)\"", self.run("help", "--bash"))
        tasks = words.group(1).split() if words else []
        self.of_tasks = {name: "".join(self.run(name, "--task", task, "--help") for task in tasks if "--task " in text)
                         for name, text in self.commands.items()}

    def run(self, *words):
        return subprocess.run([self.path, *words], check=True, capture_output=True, text=True).stdout

    def help(self, command):
        return self.run(command, "--help")

    @functools.cache
    def options(self, command):
        return set(OPTION.findall(self.commands[command] + self.of_tasks.get(command, ""))) | ALWAYS

    @functools.cache
    def all_options(self):
        return set().union(*map(self.options, self.commands))


def commands_of(line):
    """Returns the commands that a line shows: those in backticks, else the line itself."""
    spans = SPAN.findall(line)
    return spans if spans else [re.sub(r"^\s*\$ ", "", line).strip()]


def check_command(text, root, program):
    """Yields the errors of `text` if it is a command of this project."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return
    first = words[0] if words else ""
    options = OPTION.findall(text)
    if re.fullmatch(r"(?:build/\w+/)?mylos", first) and len(words) > 1:
        if re.fullmatch(r"[a-z]+", words[1]):
            if words[1] not in program.commands:
                yield f"there is no command mylos {words[1]}"
                return
            known = program.options(words[1])
        else:
            known = program.all_options()
        yield from (f"mylos {words[1]} has no option --{name}" for name in options if name.replace("_", "-") not in known)  # users may write _ for -
    elif re.match(r"(?:scripts|bench|lab)/", first) and (root / first).is_file():
        script = (root / first).read_text(encoding="utf-8")
        yield from (f"{first} has no option --{name}" for name in options if f"--{name}" not in script)
    elif first.startswith("--"):
        known = program.all_options()
        yield from (f"no command has an option --{name}" for name in options if name.replace("_", "-") not in known)  # users may write _ for -


def check_options(root, program):
    for page in pages(root):
        for number, line in lines(page):
            for text in commands_of(line):
                for breach in check_command(text, root, program):
                    yield f"{page.relative_to(root)}:{number}: {breach}"


def parse_help(text):
    """Returns the sections of a command's help: [title, [[option, placeholder, default, aliases, description], ...]]."""
    sections = []
    for line in text.splitlines():
        if re.match(r"\S.*:$", line) and not line.startswith("usage"):
            sections.append([line[:-1], []])
        elif match := re.match(r"  --(\S+)(?: (\S+))?(?:\s{2,}(.*))?$", line):
            sections[-1][1].append([match.group(1), match.group(2) or "", match.group(3) or ""])
        elif sections and sections[-1][1] and line.startswith("   "):
            row = sections[-1][1][-1]
            row[2] = f"{row[2]} {line.strip()}".strip()
    return [[title, [split_row(*row) for row in rows]] for title, rows in sections if rows]


def split_row(name, placeholder, text):
    aliases = default = ""
    if match := re.search(r" \(also (--[^)]*)\)$", text):
        aliases, text = match.group(1), text[: match.start()]
    if match := re.search(r" \[([^\]]*)\]$", text):
        default, text = match.group(1), text[: match.start()]
    return [name, placeholder, default, aliases, text]


def markdown_row(name, placeholder, default, aliases, text):
    value = placeholder.replace("|", r"\|")
    option = f"`--{name} {value}`" if placeholder else f"`--{name}`"
    others = ", ".join(f"`{alias}`" for alias in aliases.split(", ")) if aliases else ""
    return f"| {option} | {f'`{default}`' if default else ''} | {others} | {text.replace('`', '')} |"


def tables(program):
    text = ""
    for title, rows in parse_help(program.commands["train"]):
        text += f"## {title}\n\n| option | default | also | what it does |\n|---|---|---|---|\n"
        text += "\n".join(markdown_row(*row) for row in rows) + "\n\n"
    return text


BEGIN, END = "<!-- tables: check_docs.py write -->\n", "<!-- end of the tables -->\n"


def comparable(text):
    """Returns {option: (default, aliases, description)}, without --gemm, whose text depends on the libraries of a build."""
    rows = re.findall(r"^\| (`--(?:[^|]|(?<=\\)\|)*) \| ([^|]*?) ?\| ([^|]*?) ?\| (.*) \|$", text, re.MULTILINE)
    return {row[0]: row[1:] for row in rows if not row[0].startswith("`--gemm")}


def check_table(root, program):
    page = root / GENERATED
    _, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    written, printed = comparable(rest.partition(END)[0]), comparable(tables(program))
    for option in sorted(written.keys() | printed.keys()):
        if written.get(option) != printed.get(option):
            yield f"{GENERATED}: {option} is {written.get(option)} there and {printed.get(option)} in mylos train --help"


def write_table(root, program):
    page = root / GENERATED
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(head + BEGIN + "\n" + tables(program) + END + rest.partition(END)[2], encoding="utf-8")


def main(rule, root, *program):
    root, program = pathlib.Path(root), [Program(path) for path in program]
    if rule == "write":
        write_table(root, *program)
        return 0
    check = {"links": check_links, "paths": check_paths, "messages": check_messages, "questions": check_questions, "size": check_size,
             "options": check_options, "table": check_table}[rule]
    breaches = list(check(root, *program))
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
