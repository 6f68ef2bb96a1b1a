"""The committed JSON Schema, and the example that points at it."""

from infra import policy_schema
from infra.policy_file import load
from lambdas.core.policy import Mode

ROOT = policy_schema.FILE.parent.parent
EXAMPLE = ROOT / "shiftwright.yaml"


def test_schema_is_fresh() -> None:
    committed = policy_schema.FILE.read_text(encoding="utf-8")
    assert committed == policy_schema.text(), "run `make schema`"


def test_example_is_valid_and_only_observes() -> None:
    assert load(EXAMPLE).interruptions.mode is Mode.OBSERVE


def test_example_points_editors_at_the_schema() -> None:
    first = EXAMPLE.read_text(encoding="utf-8").splitlines()[0]
    path = first.removeprefix("# yaml-language-server: $schema=")
    assert (EXAMPLE.parent / path) == policy_schema.FILE
