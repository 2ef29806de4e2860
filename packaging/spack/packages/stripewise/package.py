# Not run: Spack was not at hand. The build itself is `pip install .`, which tests/program/jobs/test_wheel.py runs.
# spack repo add packaging/spack && spack dev-build stripewise@main      (in the source directory)
# tests/python/test_packaging.py holds the requirements against pyproject.toml and Cargo.toml.
from spack.package import *


class Stripewise(PythonPackage):
    """A layout optimiser for parallel I/O: learns how a program touches its files and lays the files out to match."""

    license("Apache-2.0")
    version("main")

    variant("plot", default=False, description="Figures")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-maturin@1.7:1", type="build")
    depends_on("py-highspy@1.10:1.15", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-pyarrow@15:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-tomlkit@0.13:", type=("build", "run"))
    depends_on("py-typer@0.29:", type=("build", "run"))
    depends_on("py-matplotlib@3.8:", type=("build", "run"), when="+plot")
