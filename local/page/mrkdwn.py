"""Slack's Block Kit and its mrkdwn as HTML. All text is treated as hostile."""

import html
import re
from collections.abc import Callable, Iterable, Mapping

_EMOJI = {
    "white_check_mark": "✅",
    "heavy_minus_sign": "\N{HEAVY MINUS SIGN}",
    "white_small_square": "▫️",
    "hourglass": "⌛",
    "repeat": "🔁",
    "warning": "⚠️",
    "rotating_light": "🚨",
    "eye": "👁️",
    "x": "❌",
}
# Code, and Slack's angle-bracket references, before any other mark is looked for.
_TOKENS = re.compile(r"(`[^`\n]+`|<[^<>\n]+>)")
_MARKS = (
    (re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])"), r"<b>\1</b>"),
    (re.compile(r"(?<![\w_])_([^_\n]+)_(?![\w_])"), r"<i>\1</i>"),
    (re.compile(r"(?<![\w~])~([^~\n]+)~(?![\w~])"), r"<s>\1</s>"),
)
_SHORTCODE = re.compile(r":([a-z_]+):")

Block = Mapping[str, object]


def blocks_to_html(blocks: Iterable[Block]) -> str:
    """The blocks of one message, one element each."""
    return "".join(_block(block) for block in blocks)


def text_to_html(text: str) -> str:
    """Text in Slack's mrkdwn."""
    return "".join(_token(part) for part in _TOKENS.split(text)).replace("\n", "<br>")


def _block(block: Block) -> str:
    render = _RENDERERS.get(str(block.get("type")))
    return render(block) if render else ""


def _header(block: Block) -> str:
    return f"<h4>{_text(block.get('text'))}</h4>"


def _section(block: Block) -> str:
    parts = [f"<p>{_text(block['text'])}</p>"] if "text" in block else []
    fields = [f"<p>{_text(field)}</p>" for field in _list(block.get("fields"))]
    if fields:
        parts.append(f'<div class="fields">{"".join(fields)}</div>')
    if "accessory" in block:
        parts.append(_button(block["accessory"]))
    return f'<div class="section">{"".join(parts)}</div>'


def _context(block: Block) -> str:
    elements = "".join(f"<span>{_text(each)}</span>" for each in _list(block.get("elements")))
    return f'<div class="context">{elements}</div>'


def _divider(_block: Block) -> str:
    return "<hr>"


def _actions(block: Block) -> str:
    buttons = "".join(_button(each) for each in _list(block.get("elements")))
    return f'<div class="actions">{buttons}</div>'


_RENDERERS: Mapping[str, Callable[[Block], str]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "divider": _divider,
    "actions": _actions,
}


def _button(element: object) -> str:
    if not isinstance(element, dict):
        return ""
    style = element.get("style")
    shade = f" {style}" if style in ("primary", "danger") else ""
    return f'<span class="button{shade}">{_text(element.get("text"))}</span>'


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    text = str(value.get("text", ""))
    if value.get("type") == "mrkdwn":
        return text_to_html(text)
    return _emoji(html.escape(text))


def _token(part: str) -> str:
    if len(part) > 2 and part[0] == part[-1] == "`":
        return f"<code>{_plain(part[1:-1])}</code>"
    if part.startswith("<") and part.endswith(">"):
        return _reference(part[1:-1])
    marked = _plain(part)
    for pattern, replacement in _MARKS:
        marked = pattern.sub(replacement, marked)
    return _emoji(marked)


def _reference(inside: str) -> str:
    """A link, or a date, user or channel with the text Slack falls back on."""
    target, _, label = inside.partition("|")
    shown = _plain(label or target)
    if target.startswith(("https://", "http://")):
        return f'<a href="{_plain(target)}" rel="noreferrer">{shown}</a>'
    return shown


def _plain(text: str) -> str:
    """Slack's three escapes undone, and then HTML's put in."""
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return html.escape(text)


def _emoji(text: str) -> str:
    return _SHORTCODE.sub(lambda found: _EMOJI.get(found[1], found[0]), text)
