"""Reads spack_repo's recipe without Spack, by replacing the few names that it imports from Spack.

This checks what the recipe declares (variants, conflicts) and what it passes to CMake. scripts/check-spack checks with Spack itself
that Spack accepts the recipe.
"""

import collections
import contextlib
import importlib.util
import re
import sys
import types

RECIPE = "spack_repo/mylos/packages/mylos/package.py"
ARCHITECTURES = ("10", "35", "60", "70", "75", "80", "86", "89", "90", "90a", "100", "120")  # some values of CudaPackage
TARGETS = ("gfx906", "gfx90a", "gfx90a:xnack+", "gfx942", "gfx1100")  # some values of ROCmPackage

Variant = collections.namedtuple("Variant", "name default values conditions")  # exists if any of the conditions holds


class Directives:
    """Collects the directives that the class body of the recipe calls."""

    def __init__(self):
        self.variants, self.conflicts, self.dependencies, self.resources, self._when = {}, [], [], {}, []

    def condition(self, when):
        return " ".join([*self._when, *([when] if when else [])])

    def variant(self, name, default=None, values=(True, False), when=None, description="", **_):
        assert description, f"the variant {name} has no description"
        conditions = self.variants[name].conditions if name in self.variants and when else []
        self.variants[name] = Variant(name, default, values, [*conditions, self.condition(when)])

    def conflict(self, spec, when=None, msg=None):
        self.conflicts.append((spec, self.condition(when), msg))

    def depend(self, spec, when=None, type=None):  # pylint: disable=redefined-builtin
        self.dependencies.append((spec, self.condition(when), type))

    def resource(self, name, when=None, **source):
        self.resources[name] = (source, self.condition(when))

    @contextlib.contextmanager
    def when(self, condition):
        self._when.append(condition)
        yield
        self._when.pop()


class Spec:
    """The variants of one concrete spec, by name."""

    def __init__(self, variants):
        self.variants = variants

    def __getitem__(self, name):
        """Returns a dependency, with the folders of its prefix."""
        return types.SimpleNamespace(prefix=types.SimpleNamespace(include=f"/{name}/include"), hipcc=f"/{name}/bin/hipcc")

    def satisfies(self, text):
        """Returns whether all of `+name`, `~name` and `name=value` hold. For `^...` returns the value that the caller gave for it."""
        if text.startswith("^"):
            return self.variants.get(text, False)
        words = re.findall(r"[+~][\w-]+|[\w-]+=[\w-]+", text)
        return all(self.variants.get(w[1:]) is (w[0] == "+") if w[0] in "+~" else self.variants.get(w.split("=")[0]) == w.split("=")[1] for w in words)


class CMakePackage:
    """Has define and define_from_variant as Spack has; the recipe adds cmake_args."""

    stage = types.SimpleNamespace(source_path="/source")

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
    """Returns the class of the recipe and the directives that it called."""
    directives = Directives()
    cuda = type("CudaPackage", (), {"cuda_arch_values": ARCHITECTURES})
    modules = {
        "spack.package": {
            "variant": directives.variant, "conflicts": directives.conflict, "depends_on": directives.depend, "when": directives.when,
            "resource": directives.resource,
            "version": lambda *_, **__: None, "license": lambda *_, **__: None, "join_path": lambda *parts: "/".join(map(str, parts)),
        },
        "spack_repo.builtin.build_systems.cmake": {"CMakePackage": CMakePackage, "generator": lambda *_: None},
        "spack_repo.builtin.build_systems.cuda": {"CudaPackage": cuda},
        "spack_repo.builtin.build_systems.rocm": {"ROCmPackage": type("ROCmPackage", (), {"amdgpu_targets": TARGETS})},
    }
    for name, attributes in modules.items():
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(parts[i - 1]))
        vars(sys.modules[name]).update(attributes)
    directives.variant("cuda", default=False, description="of CudaPackage")
    directives.variant("rocm", default=False, description="of ROCmPackage")
    location = importlib.util.spec_from_file_location("recipe", root / RECIPE)
    module = importlib.util.module_from_spec(location)
    location.loader.exec_module(module)
    return module.Mylos, directives


def cmake_arguments(recipe, directives, chosen, compiler=None):
    """Returns the recipe's arguments for CMake, for the defaults overridden by `chosen`. As in Spack, a variant whose condition does
    not hold does not exist."""
    variants = {v.name: chosen.get(v.name, v.default) for v in directives.variants.values()}
    for variant in directives.variants.values():
        if not any(Spec(variants).satisfies(condition) for condition in variant.conditions):
            del variants[variant.name]
    if compiler:
        variants["^kokkos+wrapper"] = True
    wrapper = types.SimpleNamespace(kokkos_cxx=compiler)
    return [word for word in recipe(Spec(variants), {"kokkos-nvcc-wrapper": wrapper}).cmake_args() if word]
