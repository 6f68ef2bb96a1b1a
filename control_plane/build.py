"""Builds the control plane's programs into the cache: `python -m control_plane.build`.

Each file appears under its name when it is whole, so a killed build is gone on with.
"""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from control_plane.cache import cache_root, locked
from control_plane.golang import GoError, find_go, go_environment
from control_plane.programs import (
    BUILD_FLAGS,
    FILES,
    GO_MODULES,
    LOOPBACK,
    PROGRAMS,
    Files,
    Patch,
    Program,
    key,
)
from local.console import Console

_TAIL_LINES = 15
_PROGRESS_SECONDS = 15
_SCRATCH = ".making-"


class BuildError(Exception):
    """The control plane cannot be built; the message says what failed and where to look."""


@dataclasses.dataclass(frozen=True)
class Built:
    """Where a built control plane lies."""

    folder: Path

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def files(self, name: str) -> tuple[Path, ...]:
        """The YAML files taken from the modules: `crds` or `stages`."""
        return tuple(sorted((self.folder / name).glob("*.yaml")))

    @property
    def is_whole(self) -> bool:
        programs = all(self.program(each.name).is_file() for each in PROGRAMS)
        return programs and all((self.folder / each.name).is_dir() for each in FILES)


def build(console: Console, cache: Path | None = None) -> Built:
    """Everything, from the cache where it is there already. Raises BuildError."""
    cache = cache or cache_root()
    built = Built(cache / f"control-plane-{key()}")
    if built.is_whole:
        return built
    lock = cache / f"{built.folder.name}.lock"
    try:
        with locked(lock, lambda: console.line("Another build is at work; waiting for it")):
            if not built.is_whole:
                _Builder(built, find_go(cache, console.line), console).run()
    except GoError as error:
        raise BuildError(str(error)) from error
    except OSError as error:
        raise BuildError(f"Cannot build into {built.folder}: {error}") from error
    return built


class _Builder:
    def __init__(self, built: Built, go: Path, console: Console) -> None:
        self._built = built
        self._go = go
        self._console = console
        self._logs = built.folder / "logs"

    def run(self) -> None:
        (self._built.folder / "bin").mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(exist_ok=True)
        # Only a killed build leaves one, and we hold the lock.
        for left in self._built.folder.glob(f"{_SCRATCH}*"):
            shutil.rmtree(left, ignore_errors=True)
        for files in FILES:
            if not (self._built.folder / files.name).is_dir():
                self._take(files)
        for number, program in enumerate(PROGRAMS, 1):
            if not self._built.program(program.name).is_file():
                self._say(f"Building {program.name} ({number} of {len(PROGRAMS)})")
                self._build(program)

    def _take(self, files: Files) -> None:
        source = self._source(files.module, files.package)
        with self._scratch() as scratch:
            whole = scratch / files.name
            whole.mkdir()
            for folder in files.folders:
                for path in sorted((source / folder).glob("*.yaml")):
                    if path.name != "kustomization.yaml":
                        (whole / path.name).write_bytes(path.read_bytes())
            if not any(whole.iterdir()):
                raise BuildError(f"{files.package} has no YAML files in {', '.join(files.folders)}")
            whole.rename(self._built.folder / files.name)

    def _build(self, program: Program) -> None:
        with self._scratch() as scratch:
            # -v names each package that is compiled, which is the progress.
            flags = ["-v", *BUILD_FLAGS, "-ldflags", program.linker_flags]
            if program.package.startswith(LOOPBACK.module):
                flags += ["-modfile", str(self._patched(program.module, LOOPBACK, scratch))]
            whole = scratch / program.name
            self._run(
                program.name, program.module, ["build", *flags, "-o", str(whole), program.package]
            )
            whole.rename(self._built.program(program.name))

    def _patched(self, module: str, patch: Patch, scratch: Path) -> Path:
        """A go.mod that takes a changed copy of the module."""
        copy = scratch / "source"
        _copy(self._source(module, patch.module), copy)
        file = copy / patch.file
        text = file.read_text()
        if text.count(patch.before) != patch.times:
            raise BuildError(
                f"{patch.module}: {patch.file} does not have {patch.before} {patch.times} times; "
                "see control_plane/programs.py"
            )
        file.write_text(text.replace(patch.before, patch.after))
        pinned = GO_MODULES / module
        modfile = scratch / "patched.mod"
        replacement = f"\nreplace {patch.module} => {copy}\n"
        modfile.write_text((pinned / "go.mod").read_text() + replacement)
        shutil.copyfile(pinned / "go.sum", scratch / "patched.sum")
        return modfile

    def _source(self, module: str, package: str) -> Path:
        """The folder of a module's source, checked against go.sum."""
        answer = self._run(package.replace("/", "-"), module, ["mod", "download", "-json", package])
        return Path(json.loads(answer)["Dir"])

    def _run(self, name: str, module: str, arguments: Sequence[str]) -> str:
        """The output of a go command; its words go to a log. Raises BuildError."""
        log = self._logs / f"{name}.log"
        began = time.monotonic()
        with (
            log.open("wb") as words,
            subprocess.Popen(
                [str(self._go), *arguments],
                cwd=GO_MODULES / module,
                env=go_environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=words,
                text=True,
            ) as process,
        ):
            try:
                output = self._output(process, log)
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            seconds = time.monotonic() - began
            last = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            raise BuildError(
                f"Building {arguments[-1]} of control_plane/go/{module}/go.mod failed after "
                f"{seconds:.0f} s. Its log is {log}; the last lines:\n{last}\n{output}"
            )
        return output

    def _output(self, process: subprocess.Popen[str], log: Path) -> str:
        """What it writes until it ends; meanwhile, how far it is."""
        while True:
            try:
                return process.communicate(timeout=_PROGRESS_SECONDS)[0]
            except subprocess.TimeoutExpired:
                count = len(log.read_bytes().splitlines())
                self._say(f"  {count} packages so far")

    def _say(self, text: str) -> None:
        self._console.line(f"{self._console.elapsed:6.1f} s  {text}")

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self._built.folder) as folder:
            yield Path(folder)


def _copy(source: Path, target: Path) -> None:
    """The files alone: those of the module cache are read-only, and so are its folders."""
    for path in source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def main(clock: Callable[[], float] = time.monotonic) -> int:
    """Build, and say where it lies."""
    console = Console()
    began = clock()
    try:
        built = build(console)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    console.line(f"The control plane is in {built.folder} ({clock() - began:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
