"""Reads spack_repo's recipe without Spack: stands in for the few names that it takes from there.

What this checks is what the recipe says about itself (variants, what it refuses) and what it passes to CMake. Whether Spack takes it is
checked with Spack itself (spack_itself.py).
"""

import collections
import contextlib
import importlib.util
import re
import sys
import types

RECIPE = "spack_repo/mylos/packages/mylos/package.py"
ARCHITECTURES = ("10", "35", "60", "70", "75", "80", "86", "89", "90", "90a", "100", "120")  # some of CudaPackage's

Variant = collections.namedtuple("Variant", "name default values when")


class Directives:
    """Collects what the recipe's class body calls."""

    def __init__(self):
        self.variants, self.conflicts, self.dependencies, self._when = {}, [], [], []

    def condition(self, when):
        return " ".join([*self._when, *([when] if when else [])])

    def variant(self, name, default=None, values=(True, False), when=None, description="", **_):
        assert description, f"the variant {name} has no description"
        self.variants[name] = Variant(name, default, values, self.condition(when))

    def conflict(self, spec, when=None, msg=None):
        self.conflicts.append((spec, self.condition(when), msg))

    def depend(self, spec, when=None, type=None):  # pylint: disable=redefined-builtin
        self.dependencies.append((spec, self.condition(when), type))

    @contextlib.contextmanager
    def when(self, condition):
        self._when.append(condition)
        yield
        self._when.pop()


class Spec:
    """The variants of one concrete spec, by name."""

    def __init__(self, variants):
        self.variants = variants

    def satisfies(self, text):
        """Of `+name`, `~name` and `name=value`, all of them; of `^...` what the caller put in by that text."""
        if text.startswith("^"):
            return self.variants.get(text, False)
        words = re.findall(r"[+~][\w-]+|[\w-]+=[\w-]+", text)
        return all(self.variants.get(w[1:]) is (w[0] == "+") if w[0] in "+~" else self.variants.get(w.split("=")[0]) == w.split("=")[1] for w in words)


class CMakePackage:
    """define and define_from_variant as Spack's do it; cmake_args is the recipe's."""

    def __init__(self, spec, others=()):
        self.spec, self.others = spec, dict(others)

    def __getitem__(self, name):
        return self.others[name]

    @staticmethod
    def define(name, value):
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        return f"-D{name}:STRING={value}"

    def define_from_variant(self, name, variant):
        value = self.spec.variants.get(variant)
        return "" if value is None else self.define(name, value)


def load(root):
    """The recipe's class and the directives that it called."""
    directives = Directives()
    cuda = type("CudaPackage", (), {"cuda_arch_values": ARCHITECTURES})
    modules = {
        "spack.package": {
            "variant": directives.variant, "conflicts": directives.conflict, "depends_on": directives.depend, "when": directives.when,
            "version": lambda *_, **__: None, "license": lambda *_, **__: None, "join_path": lambda *parts: "/".join(map(str, parts)),
        },
        "spack_repo.builtin.build_systems.cmake": {"CMakePackage": CMakePackage, "generator": lambda *_: None},
        "spack_repo.builtin.build_systems.cuda": {"CudaPackage": cuda},
    }
    for name, attributes in modules.items():
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(parts[i - 1]))
        vars(sys.modules[name]).update(attributes)
    directives.variant("cuda", default=False, description="of CudaPackage")
    location = importlib.util.spec_from_file_location("recipe", root / RECIPE)
    module = importlib.util.module_from_spec(location)
    location.loader.exec_module(module)
    return module.Mylos, directives


def cmake_arguments(recipe, directives, chosen, compiler=None):
    """What the recipe passes to CMake for the defaults with `chosen` in place; as in Spack, a variant whose condition does
    not hold is not there."""
    variants = {v.name: chosen.get(v.name, v.default) for v in directives.variants.values()}
    for variant in directives.variants.values():
        if variant.when and not Spec(dict(variants)).satisfies(variant.when):
            del variants[variant.name]
    if compiler:
        variants["^kokkos+wrapper"] = True
    wrapper = types.SimpleNamespace(kokkos_cxx=compiler)
    return [word for word in recipe(Spec(variants), {"kokkos-nvcc-wrapper": wrapper}).cmake_args() if word]
