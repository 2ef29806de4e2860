"""What the tests of verbs on a hostile store share: a store in which a member lays traps, and things of root's."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostile import GROUP, MALLORY, as_user
from rig import Result, Store, create_store, dirs, execute, region, stripes, stripewise

PRECIOUS = b"precious\n" * 100
CONTENT_BYTES = 300_000
SKEWED = [region(0, 64, stripes(("t3", 64))), region(64, 1024, stripes(("t1", 8), ("t2", 24)))]
EVEN = [region(0, 1024, stripes(("t0", 64), ("t1", 64), ("t2", 64), ("t3", 64)))]


class Trap:
    """A shared store of root's with a file of Mallory's in it, and things of root's that must stay as they are."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.content = os.urandom(CONTENT_BYTES)
        source = store.base / "source"
        source.write_bytes(self.content)
        store.data.chmod(0o777)
        self.link = store.data / "f"
        self.as_mallory("dd", f"if={source}", f"of={self.link}", "bs=1M")
        self.identity = os.readlink(self.link).rsplit("/", 1)[1]
        self.directory = store.root / "files" / self.identity
        self.victim = store.base / "victim"
        self.victim.write_bytes(PRECIOUS)
        self.victim.chmod(0o600)
        self.decoys = store.base / "decoys"
        self.decoys.mkdir(mode=0o700)
        for name in ("layout", "head", "ctl", "link", "sums", "a", "b"):
            (self.decoys / name).write_bytes(PRECIOUS)
        self.before = self.seen()

    def as_mallory(self, *command: str | Path) -> Result:
        return execute(as_user(MALLORY, command, str(GROUP)), self.store.environment(), cwd=Path("/"))

    def seen(self) -> list[tuple[object, ...]]:
        """What root has there: names, bytes, owners, modes."""
        rows: list[tuple[object, ...]] = []
        for path in (self.victim, self.decoys, *sorted(self.decoys.iterdir())):
            st = path.lstat()
            rows.append((path.name, st.st_mode, st.st_uid, st.st_gid, path.read_bytes() if path.is_file() else b""))
        return rows

    def untouched(self) -> None:
        assert self.seen() == self.before

    def lay(self, at: Path, to: Path | None = None, kind: str = "link") -> Path:
        """A trap of Mallory's under a name, in place of what is there."""
        at.unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(at, 0o666)
        elif kind == "hard":
            os.link(to or self.victim, at)
            return at
        else:
            at.symlink_to(to or self.victim)
        os.lchown(at, MALLORY, MALLORY)
        return at

    def another(self, name: str) -> Path:
        """One more file of Mallory's; its directory in the store."""
        link = self.store.data / name
        self.as_mallory("dd", f"if={self.store.base / 'source'}", f"of={link}", "bs=1M")
        return self.store.root / "files" / os.readlink(link).rsplit("/", 1)[1]

    def objects(self, identity: str = "") -> list[Path]:
        return sorted((self.store.base / "targets").glob(f"*/{identity or self.identity}.data*"))

    def layout(self, regions: list[dict[str, object]], code: int | None = 0) -> Result:
        plan = self.store.plan(self.store.base / "plan.json", self.link, regions, CONTENT_BYTES)
        return stripewise("apply", plan, "--store", self.store.root, code=code)

    def is_whole(self) -> None:
        assert self.as_mallory("sha1sum", self.link).out.split()[0] == hashlib.sha1(self.content).hexdigest()


def one_clear_error(result: Result, *words: str) -> None:
    """A failure of one line, not a traceback."""
    assert result.code not in (0, None) and "Traceback" not in result.err, result.report
    lines = result.err.strip().splitlines()
    assert lines and all(word in result.err for word in words), result.report


class Ground:
    """One shared store of root's without files, laid out anew at the same path as often as it is asked for."""

    def __init__(self, place: Path) -> None:
        self._store = create_store(place / "ground", dirs(4), shared=True)
        self._store.environment()
        self._aside = place / "aside"
        execute(["cp", "-a", self._store.base, self._aside])

    def fresh(self) -> Store:
        """The store as it was made."""
        execute(["rm", "-rf", self._store.base])
        execute(["cp", "-a", self._aside, self._store.base])
        return self._store


@contextmanager
def make_ground() -> Iterator[Ground]:
    """A ground in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="stripewise-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Ground(Path(name).resolve())
