"""Write the table of `docs/configuration.md`, and `docs/config.schema.json`, from the flags.

`make docs` and `python -m scripts.generate_configuration` run it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from scanner.cli.commands.catalog import list_settings
from scanner.config.schema import make_schema
from scanner.config.setting import Setting
from scanner.config.unflagged import UNFLAGGED_KEYS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "configuration.md"
SCHEMA = DOCS / "config.schema.json"
_BEGIN = "<!-- The rest of this page is generated from the flags: make docs -->\n"


def page() -> str:
    """Return the page: its text as it is, and the tables anew."""
    text, _, _ = PAGE.read_text().partition(_BEGIN)
    return text + _BEGIN + "\n" + _tables()


def schema() -> str:
    """Return the JSON Schema of the file."""
    return json.dumps(make_schema(list_settings()), indent=2) + "\n"


def _tables() -> str:
    lines = [
        "## Keys of flags",
        "",
        *_table(list_settings()),
        "",
        "## Keys without a flag",
        "",
        "| key | meaning |",
        "|---|---|",
    ]
    lines += [f"| `{key.key}` | {_cell(key.help)} Example: `{key.example}` |" for key in UNFLAGGED_KEYS]
    return "\n".join(lines) + "\n"


def _table(all_settings: Iterable[Setting]) -> Iterable[str]:
    yield "| key | variable | flag | type | default |"
    yield "|---|---|---|---|---|"
    for each in all_settings:
        yield f"| `{each.key}` | `{each.variable}` | `{each.flag}` of {_commands(each)} | {_type(each)} | {_default(each)} |"


def _commands(setting: Setting) -> str:
    return ", ".join(f"`{command}`" for command in setting.commands)


def _type(setting: Setting) -> str:
    one = ", ".join(f"`{choice}`" for choice in setting.choices) or setting.form.value
    bounds = [f"at least {setting.least:g}"] if setting.least is not None else []
    bounds += [f"at most {setting.most:g}"] if setting.most is not None else []
    text = ", ".join((one, *bounds))
    return f"list of {text}" if setting.many else text


def _default(setting: Setting) -> str:
    return "" if setting.default is None else f"`{json.dumps(setting.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
    SCHEMA.write_text(schema())
