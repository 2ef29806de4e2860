"""The house stays in order: no circles among modules, no file or folder too large, one definition of what is common."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from module_graphs import circles, folders, python_graph, rooms, rust_graph

ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src/lib.rs"))
LINES_MAX = 500
FILES_MAX = 20
PROSE_COLUMNS_MAX = 160
#: What stands in one file, and where: the mixing of SplitMix64, CRC-32C, threads for all cores, how much a verb copies.
ONCE = {
    r">> 30\)\)\.wrapping_mul": "crates/chance/src/splitmix.rs",
    r"CRC_32_ISCSI\)": "crates/checksum/src/lib.rs",
    r"0x82f6_?3b78|0x1edc_?6f41": None,
    r"available_parallelism": "crates/threads/src/lib.rs",
    r"pub const CHUNK_BYTES": "crates/store/src/admin/medium.rs",
}


def files() -> list[Path]:
    """Those of the project."""
    said = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    return [ROOT / name for name in said.stdout.split("\0") if name]


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_no_modules_of_a_crate_use_each_other_in_a_circle(source: Path) -> None:
    graph = rust_graph(source)
    assert sum(map(len, graph.values())) or len(graph) < 4, "no use was found"
    assert not circles(graph)


def test_rooms_of_the_store_are_in_one_order() -> None:
    graph = rooms(rust_graph(ROOT / "crates/store/src"))
    assert "admin::metadata" in graph["admin::moves"], graph
    assert not circles(graph)


def test_no_modules_of_the_package_import_each_other_in_a_circle() -> None:
    graph = python_graph(ROOT / "python/stripewise")
    assert "stripewise.errors" in graph["stripewise.native"]
    assert not circles(graph)


def test_no_folders_of_the_package_import_each_other_in_a_circle() -> None:
    graph = folders(python_graph(ROOT / "python/stripewise"))
    assert "stripewise.swd" in graph["stripewise.cluster"]
    assert "stripewise.policy.toolkit" in graph["stripewise.policy.published"]
    assert not circles(graph)


def test_circles_of_folders_are_found_where_no_modules_are_in_one(tmp_path: Path) -> None:
    for name, text in {"one/a": "from ..two import b\n", "one/c": "", "two/b": "from ..one.c import d\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    graph = python_graph(tmp_path)
    assert not circles(graph)
    assert circles(folders(graph)) == [{f"{tmp_path.name}.one", f"{tmp_path.name}.two"}]


def test_circles_are_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\nmod room;\n")
    (tmp_path / "a.rs").write_text("use crate::room::{deep::Deep, other};\n")
    (tmp_path / "b.rs").write_text("fn f() { super::a::g() }\n#[cfg(test)]\nmod tests {\n use crate::room::deep;\n}\n")
    (tmp_path / "room/mod.rs").write_text("mod deep;\n")
    (tmp_path / "room/deep.rs").write_text("use super::super::b; // use crate::a;\n")
    assert circles(rust_graph(tmp_path)) == [{"a", "b", "room::deep"}]


def test_no_file_is_too_long() -> None:
    sources = [file for file in files() if file.suffix in (".rs", ".py", ".c", ".h")]
    assert len(sources) > 100
    long = {
        str(file.relative_to(ROOT)): lines
        for file in sources
        if (lines := len(file.read_text().splitlines())) > LINES_MAX
    }
    assert not long, f"more than {LINES_MAX} lines: {long}"


def test_no_folder_is_too_full() -> None:
    held = Counter(str(file.parent.relative_to(ROOT)) for file in files())
    full = {folder: count for folder, count in held.items() if count > FILES_MAX}
    assert not full, f"more files than {FILES_MAX}: {full}"


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page's paragraphs and lists, or of a source's comments."""
    is_code = False
    for number, line in enumerate(file.read_text().split("\n"), 1):
        if file.suffix == ".md":
            is_code ^= line.lstrip().startswith("```")
            if not is_code and not line.startswith(("|", "    ", "![")):
                yield number, line
        elif line.lstrip().startswith(("//", "/*", "* ", "#: ", "# ")):
            yield number, line


def test_prose_has_lines_that_can_be_read() -> None:
    pages = [file for file in files() if file.suffix in (".md", ".rs", ".c", ".h", ".py")]
    wide = [f"{p.relative_to(ROOT)}:{n}" for p in pages for n, line in prose(p) if len(line) > PROSE_COLUMNS_MAX]
    assert not wide, wide


def words(text: str) -> set[str]:
    """Those that say something, in the singular; `NamesFile` has two."""
    found = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text)
    return {word.lower().removesuffix("s") for word in found} - {"it", "the", "a", "of"}


def repeated(lines: list[str]) -> Iterator[str]:
    """Doc comments of one line whose words are all in the name that they stand at."""
    name = re.compile(r"\s*(?:pub(?:\(.*?\))? )?(?:(?:const|unsafe|fn|struct|enum|trait|type|static) )*(\w+)")
    for n, line in enumerate(lines[1:-1], 1):
        if line.lstrip().startswith("/// ") and not any("///" in lines[beside] for beside in (n - 1, n + 1)):
            named = name.match(next(item for item in lines[n + 1 :] if not item.lstrip().startswith("#[")))
            if named and words(line) <= words(named[1]):
                yield line.strip()


def test_no_doc_comment_repeats_the_name() -> None:
    example = ["", "/// Its bytes.", "pub bytes_read: u64,", "/// Bytes, of reads.", "pub reads: u64,", ""]
    assert [*repeated(example)] == ["/// Its bytes."]
    sources = [file for crate in CRATES for file in crate.rglob("*.rs")]
    found = [f"{file}: {line}" for file in sources for line in repeated(file.read_text().splitlines())]
    assert not found, "\n".join(found)


def test_what_is_common_stands_once() -> None:
    rust = [file for file in files() if file.suffix == ".rs" and "src" in file.parts]
    sources = {str(file.relative_to(ROOT)): file.read_text() for file in rust}
    for pattern, home in ONCE.items():
        found = [name for name, text in sources.items() if re.search(pattern, text)]
        assert found == ([home] if home else []), f"{pattern}: {found}"


def test_modules_of_tests_have_names_of_their_own() -> None:
    """pytest imports them by name alone: of two of one name, the second is not run."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
