"""Block Kit as Slack checks it: the layout blocks of a message, with Slack's own limits and words.

Only the block types that Shiftwright sends. Sources: docs.slack.dev/reference/block-kit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

BLOCKS_PER_MESSAGE = 50
_TEXT = 3_000
_FIELD = 2_000
_HEADER = 150
_BUTTON = 75
_BUTTON_VALUE = 2_000
_IDENTIFIER = 255
_ADDRESS = 3_000

Json = object
Problems = Iterator[str]


def problems(blocks: Json) -> tuple[str, ...]:
    """Everything that Slack would refuse in the blocks of one message, in its words."""
    if not isinstance(blocks, list):
        return (_at("must be an array", "/blocks"),)
    if not 1 <= len(blocks) <= BLOCKS_PER_MESSAGE:
        return tuple(_count(blocks, 1, BLOCKS_PER_MESSAGE, "/blocks"))
    found = [
        problem
        for index, block in enumerate(blocks)
        for problem in _block(block, f"/blocks/{index}")
    ]
    found += _duplicates(blocks, "block_id")
    found += _duplicates(
        [element for block in blocks for element in _interactive(block)], "action_id"
    )
    return tuple(found)


def _at(problem: str, pointer: str) -> str:
    return f"{problem} [json-pointer:{pointer}]"


def _block(block: Json, at: str) -> Problems:
    if not isinstance(block, dict):
        yield _at("must be an object", at)
        return
    check = _CHECKS.get(str(block.get("type")))
    if check is None:
        yield _at(f"unsupported type: {block.get('type')}", f"{at}/type")
        return
    yield from _string(block, "block_id", at, _IDENTIFIER)
    yield from check(block, at)


def _header(block: Mapping[str, Json], at: str) -> Problems:
    yield from _only(block, ("text",), at)
    yield from _text(block.get("text"), f"{at}/text", _HEADER, ("plain_text",))


def _section(block: Mapping[str, Json], at: str) -> Problems:
    yield from _only(block, ("text", "fields", "accessory", "expand"), at)
    if "text" not in block and "fields" not in block:
        yield _at("missing required field: text or fields", at)
    if "text" in block:
        yield from _text(block["text"], f"{at}/text", _TEXT)
    if "fields" in block:
        yield from _each(block["fields"], 10, f"{at}/fields", _field)
    if "accessory" in block:
        yield from _button(block["accessory"], f"{at}/accessory")


def _context(block: Mapping[str, Json], at: str) -> Problems:
    yield from _only(block, ("elements",), at)
    yield from _each(block.get("elements"), 10, f"{at}/elements", _context_element)


def _actions(block: Mapping[str, Json], at: str) -> Problems:
    yield from _only(block, ("elements",), at)
    yield from _each(block.get("elements"), 25, f"{at}/elements", _button)


def _divider(block: Mapping[str, Json], at: str) -> Problems:
    yield from _only(block, (), at)


_CHECKS: Mapping[str, Callable[[Mapping[str, Json], str], Problems]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "divider": _divider,
}


def _field(value: Json, at: str) -> Problems:
    yield from _text(value, at, _FIELD)


def _context_element(value: Json, at: str) -> Problems:
    yield from _text(value, at, _TEXT)


def _button(value: Json, at: str) -> Problems:
    if not isinstance(value, dict) or value.get("type") != "button":
        yield _at("unsupported type: only button is known here", at)
        return
    yield from _text(value.get("text"), f"{at}/text", _BUTTON, ("plain_text",))
    yield from _string(value, "action_id", at, _IDENTIFIER)
    yield from _string(value, "value", at, _BUTTON_VALUE)
    yield from _string(value, "url", at, _ADDRESS)
    if value.get("style", "primary") not in ("primary", "danger"):
        yield _at("must be a valid enum value", f"{at}/style")


def _text(
    value: Json, at: str, most: int, kinds: Sequence[str] = ("mrkdwn", "plain_text")
) -> Problems:
    if not isinstance(value, dict):
        yield _at("missing required field: text", at)
        return
    if value.get("type") not in kinds:
        yield _at(f"unsupported type: {value.get('type')}, expected {' or '.join(kinds)}", at)
    text = value.get("text")
    if not isinstance(text, str) or not text:
        yield _at("must be more than 0 characters", f"{at}/text")
    elif len(text) > most:
        yield _at(f"must be less than {most + 1} characters", f"{at}/text")


def _string(holder: Mapping[str, Json], key: str, at: str, most: int) -> Problems:
    value = holder.get(key, "")
    if not isinstance(value, str):
        yield _at("must be a string", f"{at}/{key}")
    elif len(value) > most:
        yield _at(f"must be less than {most + 1} characters", f"{at}/{key}")


def _each(values: Json, most: int, at: str, check: Callable[[Json, str], Problems]) -> Problems:
    if not isinstance(values, list):
        yield _at("must be an array", at)
        return
    yield from _count(values, 1, most, at)
    for index, value in enumerate(values[:most]):
        yield from check(value, f"{at}/{index}")


def _count(values: Sequence[Json], least: int, most: int, at: str) -> Problems:
    if len(values) < least:
        yield _at(f"no fewer than {least} items allowed", at)
    if len(values) > most:
        yield _at(f"no more than {most} items allowed", at)


def _only(block: Mapping[str, Json], known: Sequence[str], at: str) -> Problems:
    for key in block:
        if key not in ("type", "block_id", *known):
            yield _at(f"invalid additional property: {key}", at)


def _interactive(block: Json) -> list[Json]:
    if not isinstance(block, dict):
        return []
    elements = block.get("elements")
    accessory = block.get("accessory")
    return [*(elements if isinstance(elements, list) else []), *([accessory] if accessory else [])]


def _duplicates(holders: Sequence[Json], key: str) -> list[str]:
    """Identifiers used twice. Slack asks for this per block; one message is the safer measure."""
    seen: set[str] = set()
    found: list[str] = []
    for holder in holders:
        value = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(value, str):
            continue
        if value in seen:
            found.append(_at(f"{key} {value!r} already exists", "/blocks"))
        seen.add(value)
    return found
