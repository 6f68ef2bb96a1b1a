"""The JSON Schema of shiftwright.yaml, made from the policy types, for editors and for checks."""

import json
from pathlib import Path
from typing import Any

import msgspec

from lambdas.core.policy import Policy

FILE = Path(__file__).resolve().parent.parent / "docs" / "shiftwright.schema.json"


def schema() -> dict[str, Any]:
    """The schema as data."""
    made = msgspec.json.schema(Policy)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made


def text() -> str:
    """The schema as the committed file has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the committed file anew."""
    FILE.write_text(text(), encoding="utf-8")
    print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
