"""Names, types and definitions of SNOMED CT from its descriptions and language reference sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from biograft.languages import language_code
from biograft.records import IS_A, DefinitionRecord, NameKind, NameRecord, TypeRecord
from biograft.sources.format import Block, SourceConfig
from biograft.sources.log import ReadLog
from biograft.sources.snomed_rows import Rows

if TYPE_CHECKING:
    import polars as pl

IS_A_TYPE = "116680003"
PREFERRED = "900000000000548007"
FULLY_SPECIFIED, SYNONYM, DEFINITION = (
    "900000000000003001", "900000000000013009", "900000000000550004",
)  # fmt: skip

_TAG = r"\s*\(([^()]+)\)$"


class Names:
    """Reads descriptions block by block; those that may be preferred wait for the end."""

    def __init__(self, config: SourceConfig, log: ReadLog) -> None:
        import polars as pl

        self._config, self._log = config, log
        self._ranks = pl.DataFrame(schema={"id": pl.String, "rank": pl.UInt32})
        self._sets: dict[str, int] = {}
        self._candidates: list[pl.DataFrame] = []
        self._typed: list[pl.Series] = []
        self._other_types: list[pl.DataFrame] = []
        columns = ("concept", "text", "language")
        self._preferred = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        self._relations = {IS_A_TYPE: IS_A}
        self._attributes: dict[str, str] = {}

    @property
    def has_preferences(self) -> bool:
        """Whether any language reference set has been read."""
        return self._ranks.height > 0

    def read_preferences(self, blocks: Iterable[Rows]) -> None:
        """Keep which descriptions are preferred, ranked by the place of their set."""
        import polars as pl

        for rows in blocks:
            frame = rows.frame.filter(pl.col("acceptabilityId") == PREFERRED)
            if not frame.height:
                continue
            for name in frame["refsetId"].unique(maintain_order=True):
                self._sets.setdefault(name, len(self._sets))
            ranks = frame.select(
                id="referencedComponentId",
                rank=pl.col("refsetId").replace_strict(self._sets, return_dtype=pl.UInt32),
            )
            ranks = pl.concat([self._ranks, ranks])
            self._ranks = ranks.group_by("id").agg(pl.col("rank").min())

    def read(self, rows: Rows) -> Iterator[Block]:
        """Yield a block's synonyms, types and definitions."""
        import polars as pl

        kinds = [FULLY_SPECIFIED, SYNONYM, DEFINITION]
        rows.reject_unless(rows.column("typeId").is_in(kinds), "unknown typeId of a description")
        rows.reject_unless(rows.column("term").str.strip_chars() != "", "term is blank")
        rows.reject_unless(rows.column("languageCode") != "", "languageCode is blank")
        codes = {tag: language_code(tag) for tag in rows.column("languageCode").unique()}
        frame = rows.frame.select(
            "id", "typeId", "line",
            concept="conceptId",
            text=pl.col("term").str.strip_chars(),
            language=pl.col("languageCode").replace(codes),
            source=pl.lit(""),
        )  # fmt: skip
        definitions = frame.filter(pl.col("typeId") == DEFINITION)
        if definitions.height:
            columns = ["concept", "text", "language", "source", "line"]
            yield Block(DefinitionRecord, definitions.select(columns))
        yield from self._types(frame.filter(pl.col("typeId") == FULLY_SPECIFIED), rows)
        names = frame.filter(pl.col("typeId") != DEFINITION).join(
            self._ranks, on="id", how="left", maintain_order="left"
        )
        may_be = (pl.col("typeId") == SYNONYM) & pl.col("rank").is_not_null()
        self._candidates.append(names.filter(may_be))
        yield _names(names.filter(~may_be), NameKind.SYNONYM)

    def _types(self, names: pl.DataFrame, rows: Rows) -> Iterator[Block]:
        """Yield the types of concepts by their English names; others wait, untagged have none."""
        import polars as pl

        tagged = names.with_columns(type=pl.col("text").str.extract(_TAG))
        untagged = tagged.filter(pl.col("type").is_null())
        for name in untagged.iter_rows(named=True):
            self._log.doubt(
                "fully specified name without a tag", name["line"], name["text"], path=rows.path
            )
        tagged = tagged.drop_nulls("type")
        english = pl.col("language") == "en"
        self._other_types.append(tagged.filter(~english))
        tagged = tagged.filter(english)
        self._typed.append(tagged["concept"])
        self._keep_attributes(tagged)
        if tagged.height:
            yield _types(tagged)

    def _keep_attributes(self, tagged: pl.DataFrame) -> None:
        import polars as pl

        attributes = tagged.filter(pl.col("type") == "attribute")
        texts = attributes["text"].str.replace(_TAG, "")
        self._attributes.update(zip(attributes["concept"], texts, strict=True))

    def finish(self) -> Iterator[Block]:
        """Yield the preferred name of each concept and language, and what else had to wait."""
        import polars as pl

        if self._candidates:
            names = pl.concat(self._candidates).sort("rank", maintain_order=True)
            first = pl.struct("concept", "language").is_first_distinct()
            names = names.with_columns(first=first)
            self._preferred = names.filter("first").drop("first")
            yield _names(self._preferred, NameKind.PREFERRED)
            yield _names(names.filter(~pl.col("first")), NameKind.SYNONYM)
            self._candidates.clear()
        if self._other_types:
            others = pl.concat(self._other_types)
            typed = pl.concat(self._typed)
            others = others.filter(~others["concept"].is_in(typed.implode()))
            others = others.unique("concept", keep="first", maintain_order=True)
            if others.height:
                yield _types(others)
            self._other_types.clear()

    def of_relation(self, attribute: str) -> str:
        """Name a relation: by its attribute's preferred name, else its full name, else its id."""
        import polars as pl

        if attribute not in self._relations:
            found = self._preferred.filter(pl.col("concept") == attribute)
            names = [*found.filter(pl.col("language") == "en")["text"], *found["text"]]
            names.append(self._attributes.get(attribute, attribute))
            self._relations[attribute] = names[0]
        return self._relations[attribute]


def _names(frame: pl.DataFrame, kind: NameKind) -> Block:
    import polars as pl

    kinds = pl.lit(str(kind)).alias("kind")
    return Block(NameRecord, frame.select("concept", "text", "language", kinds, "source", "line"))


def _types(frame: pl.DataFrame) -> Block:
    import polars as pl

    label, tree = pl.col("type").alias("label"), pl.lit("").alias("tree")
    return Block(TypeRecord, frame.select("concept", "type", label, tree, "line"))
