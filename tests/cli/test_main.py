"""The shiftwright command."""

from pathlib import Path

import pytest

from cli.main import main

ROOT = Path(__file__).parents[2]


def test_a_good_policy_is_summed_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["check"]) == 0
    said = capsys.readouterr()
    assert said.out == (
        "shiftwright.yaml: 1 cluster in eu-west-1, 1 workload; interruptions: observe\n"
    )
    assert said.err == ""


def test_errors_go_to_standard_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("clusters: {}\n")
    assert main(["check", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.removeprefix(f"{file}:1: ") for line in said.err.splitlines()] == [
        "clusters: found an empty section; expected a section of keys, 1 or more entries",
        "slack: found nothing; expected the key slack",
    ]


@pytest.mark.parametrize("arguments", [[], ["chek"], ["check", "a", "b"]])
def test_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: shiftwright" in capsys.readouterr().err
