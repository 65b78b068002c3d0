"""Texts of biograft in other languages than English: help, errors and lines of output.

A catalogue (``cli/messages/zh.toml``) maps English texts to those of a language; what it lacks
stays English. Files and JSON are never translated, but for the errors that a page shows.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

from biograft.errors import InputError
from biograft.progress import width

_GAP = re.compile(" {2,}")
_SPACE = re.compile(r"\s+")
_PARAGRAPH = re.compile(r"\n\s*\n")
_EXTRA = re.compile(r"  \[([^\[\]]+)\]$")
_WORD = re.compile("[A-Za-z]+")


class Catalogue:
    """The texts of a language."""

    def __init__(self, texts: Mapping[str, Mapping[str, str]]) -> None:
        self._texts, self._help = texts, texts["help"]
        self._usage, self._errors = _Templates(texts["usage"]), _Templates(texts["errors"])
        self._output = _Templates(texts["output"], self._errors)

    @classmethod
    @functools.cache
    def open(cls, language: str) -> Catalogue:
        """Open the catalogue of a language, such as ``zh``."""
        text = (files("biograft.cli") / "messages" / f"{language}.toml").read_text("utf-8")
        return cls(tomllib.loads(text))

    def extended(self, module: str) -> Catalogue:
        """Return it with the texts of a command of another package.

        They are in ``messages/zh.toml`` beside the ``module`` of the command, if there.
        """
        package = module.rpartition(".")[0]
        file = files(package) / "messages" / "zh.toml" if package else None
        if file is None or not file.is_file():
            return self
        more = tomllib.loads(file.read_text("utf-8"))
        return Catalogue({part: {**own, **more.get(part, {})} for part, own in self._texts.items()})

    def help(self, text: str) -> str:
        """Translate a text of help, paragraph by paragraph."""
        paragraphs = (_SPACE.sub(" ", each).strip() for each in _PARAGRAPH.split(text))
        return "\n\n".join(self._help.get(each, each) for each in paragraphs)

    def error(self, error: Exception | str) -> str:
        """Translate an error or its message; the place and the text in it stay as they are."""
        if not isinstance(error, InputError):
            return self._errors.translate(str(error))
        place = f"{error.path}:{error.line}" if error.line else str(error.path)
        found = f"（实为：{error.text[:80]!r}）" if error.text is not None else ""
        advice = f"；{self._errors.translate(error.remedy)}" if error.remedy else ""
        return f"{place}：{self._errors.translate(error.problem)}{found}{advice}"

    def line(self, text: str) -> str:
        """Translate a line of output, or a word in it; columns stay where they begin.

        A line is an entry of the catalogue, or each of its cells is. Others stay, as do JSON and
        tables that are separated by tabs.
        """
        if text[:1] in ("{", "[") or "\t" in text or not text.strip():
            return text
        cells = _GAP.split(text)
        found = self._output.whole("  ".join(cells))
        new = [self._output.whole(cell) for cell in cells if cell] if found is None else []
        if found is None and all(each is not None for each in new):
            found = "  ".join(([] if cells[0] else [""]) + [each or "" for each in new])
        if found is None:
            return text
        starts = [0, *(gap.end() for gap in _GAP.finditer(text))]
        shown = ""
        for cell, start in zip(found.split("  "), starts, strict=False):
            shown += " " * max(width(text[:start]) - width(shown), 2 if start else 0) + cell
        return shown

    def usage(self, text: str) -> str:
        """Translate a part of the help, or an error of usage."""
        return self._usage.translate(text)

    def extra(self, help_text: str) -> str:
        """Translate what stands in brackets behind the help of an option."""
        found = _EXTRA.search(help_text)
        if not found:
            return help_text
        parts = "；".join(self.usage(part) for part in found[1].split("; "))
        return f"{help_text[: found.start()]} [{parts}]"


class _Templates:
    """Texts with places ``{}`` for any text; of those that fit the longest counts.

    What stands at a place is translated, too, by this table. A text that fits none is translated
    by its parts: a problem and its remedy are joined by a semicolon, a place and its problem by a
    colon. In a table of ``data`` places stay as they are, but for the last one as ``{last}``.

    Args:
        texts: English texts, and those of the language.
        data: Table by which the last place is translated.
    """

    def __init__(self, texts: Mapping[str, str], data: _Templates | None = None) -> None:
        self._texts, self._data = texts, data
        self.translate = functools.lru_cache(4096)(self._translate)
        templates = sorted((key for key in texts if "{}" in key), key=_n_letters, reverse=True)
        self._templates = [(key.split("{}"), key) for key in templates]

    def _translate(self, text: str) -> str:
        return self.whole(text) or self._by_parts(text)

    def whole(self, text: str) -> str | None:
        """Translate a text that is an entry, or fits one; None for others."""
        if text in self._texts:
            return self._texts[text]
        for parts, key in self._templates:
            if not (text.startswith(parts[0]) and all(part in text for part in parts)):
                continue
            if found := _pattern(key, spaced=self._data is None).fullmatch(text):
                places = found.groups()
                if self._data is None:
                    return self._texts[key].format(*map(self.translate, places))
                last = self._data.translate(places[-1])
                last = self.whole(last) or last
                return self._texts[key].format(*places, last=last)
        return None

    def _by_parts(self, text: str) -> str:
        """Translate the parts at a mark, the one that leaves the fewest words as they are."""
        found = [text]
        for mark, joint in ((": ", "："), ("; ", "；")):
            first, split, rest = text.partition(mark)
            if split:
                parts = self.translate(first), self.translate(rest)
                if parts[1] != rest or (mark == "; " and parts[0] != first):
                    found.append(joint.join(parts))
        return min(found, key=lambda each: len(_WORD.findall(each)))


def _n_letters(template: str) -> int:
    return len(template.replace("{}", ""))


@functools.cache
def _pattern(template: str, *, spaced: bool) -> re.Pattern[str]:
    """Match a text at each place; at the beginning, none with a mark between two parts.

    Args:
        template: Text with places ``{}``.
        spaced: Whether a text may have the blanks between columns.
    """
    place = "(?:(?!; ).)+?" if spaced else "(?:(?!  ).)+?"
    first, *others = map(re.escape, template.split("{}"))
    begin = f"({place})" if first else "((?:(?!: |; ).)+?)"
    return re.compile(first + begin + f"({place})".join(others), re.DOTALL)
