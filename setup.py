"""The build of the C kernels, which first writes the headers that are made from pipeline/spec."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

_SPEC = Path(__file__).parent / "pipeline" / "spec"


def _headers() -> dict[str, str]:
    # Loaded by its place: foveate is not installed yet, and what it imports need not be.
    found = spec_from_file_location("foveate_spec", _SPEC / "__init__.py", submodule_search_locations=[str(_SPEC)])
    package = module_from_spec(found)
    sys.modules[found.name] = package
    found.loader.exec_module(package)
    return import_module("foveate_spec.headers").headers("c")


class BuildKernels(build_ext):
    """build_ext, with the generated headers in a folder of its own.

    The library is loaded by ctypes and knows nothing of Python: its name and the wheel's tag hold no version of it.
    """

    def get_ext_filename(self, ext_name: str) -> str:
        """Where the library goes."""
        return f"{ext_name.replace('.', '/')}.so"

    def build_extensions(self) -> None:
        """Write the headers, then compile."""
        folder = Path(self.build_temp) / "include"
        for name, text in _headers().items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        for extension in self.extensions:
            extension.include_dirs.append(str(folder))
            extension.depends += [str(path) for path in _SPEC.glob("*.py")]
        super().build_extensions()


class AnyPython(bdist_wheel):
    """bdist_wheel for every Python 3, on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """The wheel's tag."""
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"bdist_wheel": AnyPython, "build_ext": BuildKernels})
