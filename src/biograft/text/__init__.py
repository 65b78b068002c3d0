"""Annotated text: corpus formats, dictionary matching, abbreviations, sentences, segmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.text.abbreviations import (
        Abbreviation as Abbreviation,
        LongForms as LongForms,
        find_abbreviations as find_abbreviations,
        find_appositions as find_appositions,
    )
    from biograft.text.alignment import align_spans as align_spans, split_tokens as split_tokens
    from biograft.text.cleaning import Cleaner as Cleaner, CleaningConfig as CleaningConfig
    from biograft.text.formats import (
        DOCUMENT_FORMATS as DOCUMENT_FORMATS,
        FormatAdapter as FormatAdapter,
        convert as convert,
        read_documents as read_documents,
        sniff as sniff,
        write_documents as write_documents,
    )
    from biograft.text.formats.pubtator import (
        read_pubtator as read_pubtator,
        write_pubtator as write_pubtator,
    )
    from biograft.text.input_config import InputConfig as InputConfig
    from biograft.text.inputs import Inputs as Inputs, read_texts as read_texts
    from biograft.text.mention_text import (
        clean_name as clean_name,
        clean_text as clean_text,
        mark_mention as mark_mention,
        split_context as split_context,
    )
    from biograft.text.name_rules import (
        NamesIndexConfig as NamesIndexConfig,
        read_stop_words as read_stop_words,
    )
    from biograft.text.names_index import (
        NAMES_INDEX as NAMES_INDEX,
        NameMatch as NameMatch,
        NamesIndex as NamesIndex,
    )
    from biograft.text.near_duplicates import (
        NearDuplicateConfig as NearDuplicateConfig,
        NearDuplicates as NearDuplicates,
    )
    from biograft.text.rich_text import html_text as html_text
    from biograft.text.segmentation import (
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
    from biograft.text.segmentation.segmenter import (
        ChineseSegmenter as ChineseSegmenter,
        HeadSegmenter as HeadSegmenter,
    )
    from biograft.text.segmentation.words import (
        UnigramVocabulary as UnigramVocabulary,
        fit_vocabulary as fit_vocabulary,
    )
    from biograft.text.sentences import split_sentences as split_sentences
    from biograft.text.shards import (
        SHARDS as SHARDS,
        AnnotatedDocument as AnnotatedDocument,
        LinkedSpan as LinkedSpan,
        Shards as Shards,
        read_shard as read_shard,
        shard_path as shard_path,
        write_shard as write_shard,
    )
    from biograft.text.spelling import MisspeltNames as MisspeltNames, WordFinder as WordFinder
    from biograft.text.stop_words import (
        StopWordConfig as StopWordConfig,
        propose_stop_words as propose_stop_words,
        write_stop_words as write_stop_words,
    )
    from biograft.text.tables import read_table as read_table
    from biograft.text.tasks import (
        TaskConfig as TaskConfig,
        anonymise as anonymise,
        overlap as overlap,
        read_task as read_task,
        summarise as summarise,
        write_examples as write_examples,
    )
    from biograft.text.tasks.registry import (
        Answer as Answer,
        ClassExample as ClassExample,
        PairExample as PairExample,
        RankingExample as RankingExample,
        RelationExample as RelationExample,
        sniff_task as sniff_task,
    )
    from biograft.text.tokens import (
        Spans as Spans,
        find_tokens as find_tokens,
        select_disjoint as select_disjoint,
        simplify as simplify,
    )
    from biograft.text.vocabulary import (
        VocabularyBuilder as VocabularyBuilder,
        word_form as word_form,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
