"""Annotated text: corpus formats, dictionary matching, abbreviations, sentences, segmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.corpus.abbreviations import (
        Abbreviation as Abbreviation,
        LongForms as LongForms,
        find_abbreviations as find_abbreviations,
        find_appositions as find_appositions,
    )
    from biograft.corpus.alignment import align_spans as align_spans, split_tokens as split_tokens
    from biograft.corpus.cleaning import Cleaner as Cleaner, CleaningConfig as CleaningConfig
    from biograft.corpus.formats import (
        DOCUMENT_FORMATS as DOCUMENT_FORMATS,
        FormatAdapter as FormatAdapter,
        convert as convert,
        read_documents as read_documents,
        sniff as sniff,
        write_documents as write_documents,
    )
    from biograft.corpus.formats.pubtator import (
        read_pubtator as read_pubtator,
        write_pubtator as write_pubtator,
    )
    from biograft.corpus.input_config import InputConfig as InputConfig
    from biograft.corpus.inputs import Inputs as Inputs, read_texts as read_texts
    from biograft.corpus.mention_text import (
        clean_name as clean_name,
        clean_text as clean_text,
        mark_mention as mark_mention,
        split_context as split_context,
    )
    from biograft.corpus.name_rules import (
        NamesIndexConfig as NamesIndexConfig,
        read_stop_words as read_stop_words,
    )
    from biograft.corpus.names_index import (
        NAMES_INDEX as NAMES_INDEX,
        NameMatch as NameMatch,
        NamesIndex as NamesIndex,
    )
    from biograft.corpus.near_duplicates import (
        NearDuplicateConfig as NearDuplicateConfig,
        NearDuplicates as NearDuplicates,
    )
    from biograft.corpus.rich_text import html_text as html_text
    from biograft.corpus.segmentation import (
        CutPoint as CutPoint,
        Phrase as Phrase,
        PhraseConfig as PhraseConfig,
        Segmentation as Segmentation,
        SegmentationConfig as SegmentationConfig,
        build_segmentation as build_segmentation,
        find_cut_points as find_cut_points,
        mine_phrases as mine_phrases,
        read_cut_points as read_cut_points,
        read_phrases as read_phrases,
        write_cut_points as write_cut_points,
        write_phrases as write_phrases,
    )
    from biograft.corpus.segmentation.heads import HeadSegmenter as HeadSegmenter
    from biograft.corpus.segmentation.segmenter import ChineseSegmenter as ChineseSegmenter
    from biograft.corpus.segmentation.words import (
        UnigramVocabulary as UnigramVocabulary,
        fit_vocabulary as fit_vocabulary,
    )
    from biograft.corpus.sentences import split_sentences as split_sentences
    from biograft.corpus.shards import (
        SHARDS as SHARDS,
        AnnotatedDocument as AnnotatedDocument,
        LinkedSpan as LinkedSpan,
        Shards as Shards,
        read_shard as read_shard,
        shard_path as shard_path,
        write_shard as write_shard,
    )
    from biograft.corpus.spans import Spans as Spans, select_disjoint as select_disjoint
    from biograft.corpus.spelling import MisspeltNames as MisspeltNames, WordFinder as WordFinder
    from biograft.corpus.stop_words import (
        StopWordConfig as StopWordConfig,
        propose_stop_words as propose_stop_words,
        write_stop_words as write_stop_words,
    )
    from biograft.corpus.tables import read_table as read_table
    from biograft.corpus.tasks import (
        TaskConfig as TaskConfig,
        anonymise as anonymise,
        overlap as overlap,
        read_task as read_task,
        summarise as summarise,
        write_examples as write_examples,
    )
    from biograft.corpus.tasks.records import (
        Answer as Answer,
        ClassExample as ClassExample,
        PairExample as PairExample,
        RankingExample as RankingExample,
        RelationExample as RelationExample,
    )
    from biograft.corpus.tasks.registry import sniff_task as sniff_task
    from biograft.corpus.tokens import find_tokens as find_tokens, simplify as simplify
    from biograft.corpus.vocabulary import VocabularyBuilder as VocabularyBuilder
    from biograft.corpus.word_forms import word_form as word_form


__getattr__, __dir__, __all__ = lazify(__name__)
