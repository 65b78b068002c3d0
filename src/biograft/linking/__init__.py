"""Linking: from text to the concepts of a knowledge base, every answer with its evidence.

>>> from biograft.linking import Linker
>>> linker = Linker.open("KB")  # doctest: +SKIP
>>> linker("Type 2 diabetes (T2D) was found.").mentions[0].concept  # doctest: +SKIP
'D003924'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.calibration import (
        Calibration as Calibration,
        choose_threshold as choose_threshold,
        fit_calibration as fit_calibration,
    )
    from biograft.linking.candidates import (
        Candidate as Candidate,
        Context as Context,
        Evidence as Evidence,
        Generator as Generator,
        LinkedDocument as LinkedDocument,
        LinkedMention as LinkedMention,
        NameHits as NameHits,
    )
    from biograft.linking.choice import (
        ChoiceConfig as ChoiceConfig,
        ChoiceError as ChoiceError,
        ChoiceReview as ChoiceReview,
        LlmChooser as LlmChooser,
        LlmConfig as LlmConfig,
        UnavailableError as UnavailableError,
    )
    from biograft.linking.composites import (
        split_composite as split_composite,
        split_composites as split_composites,
    )
    from biograft.linking.config import LinkerConfig as LinkerConfig
    from biograft.linking.dense import DenseConfig as DenseConfig, DenseIndex as DenseIndex
    from biograft.linking.dense.config import STORAGES as STORAGES
    from biograft.linking.dense.encoders import (
        DEFAULT_ENCODER as DEFAULT_ENCODER,
        default_encoder as default_encoder,
        load_encoder as load_encoder,
    )
    from biograft.linking.dense.index import collect_texts as collect_texts
    from biograft.linking.dense.search import (
        ExactSearch as ExactSearch,
        GraphSearch as GraphSearch,
        RowHits as RowHits,
        UnitVectorTable as UnitVectorTable,
        VectorTable as VectorTable,
    )
    from biograft.linking.detection import (
        DictionaryDetector as DictionaryDetector,
        GivenMentions as GivenMentions,
        MentionDetector as MentionDetector,
        MisspeltDetector as MisspeltDetector,
        ModelDetector as ModelDetector,
        UnionDetector as UnionDetector,
    )
    from biograft.linking.forms import MentionForms as MentionForms
    from biograft.linking.fusion import (
        CandidateBuilder as CandidateBuilder,
        CandidatePool as CandidatePool,
        FusedSearch as FusedSearch,
        collect_candidates as collect_candidates,
        empty_pool as empty_pool,
        extend_pool as extend_pool,
    )
    from biograft.linking.generative import (
        Mixing as Mixing,
        NameTrie as NameTrie,
        Seq2SeqLinker as Seq2SeqLinker,
        select_names as select_names,
    )
    from biograft.linking.index import (
        INDEX as INDEX,
        WEIGHTS as WEIGHTS,
        IndexConfig as IndexConfig,
        build_index as build_index,
        open_index as open_index,
        read_weights as read_weights,
        update_index as update_index,
        write_weights as write_weights,
    )
    from biograft.linking.lexical import (
        LexicalConfig as LexicalConfig,
        LexicalIndex as LexicalIndex,
    )
    from biograft.linking.lexical.synonyms import (
        WordSynonyms as WordSynonyms,
        learn_substitutions as learn_substitutions,
    )
    from biograft.linking.lexicon import (
        StoreLexicon as StoreLexicon,
        clinical_lexicon as clinical_lexicon,
    )
    from biograft.linking.linker import Linker as Linker
    from biograft.linking.nil import (
        NilThreshold as NilThreshold,
        default_threshold as default_threshold,
        is_misspelt as is_misspelt,
    )
    from biograft.linking.normalisation import (
        DEFAULT_STEPS as DEFAULT_STEPS,
        STEPS as STEPS,
        Steps as Steps,
    )
    from biograft.linking.outputs import (
        COLUMNS as COLUMNS,
        OUTPUTS as OUTPUTS,
        ConceptIds as ConceptIds,
        Output as Output,
        OutputRun as OutputRun,
        link_chunks as link_chunks,
        write_linked as write_linked,
    )
    from biograft.linking.outputs.lines import candidates_table as candidates_table, table as table
    from biograft.linking.queries import (
        LabelledMention as LabelledMention,
    )
    from biograft.linking.rankers import (
        MODELS as MODELS,
        LoadRanker as LoadRanker,
        NameFinder as NameFinder,
        load_ranker as load_ranker,
        needs_search as needs_search,
    )
    from biograft.linking.rerank import (
        ContextReranker as ContextReranker,
        CrossEncoder as CrossEncoder,
        MentionCandidates as MentionCandidates,
        SearchRanker as SearchRanker,
        load_context_reranker as load_context_reranker,
    )
    from biograft.linking.search_weights import fit_lexical_weight as fit_lexical_weight
    from biograft.linking.static import (
        StaticEncoder as StaticEncoder,
        StaticWeights as StaticWeights,
        WordPieceTokenizer as WordPieceTokenizer,
        quantise as quantise,
        read_tokenizer as read_tokenizer,
    )
    from biograft.linking.steps import (
        LINKER_STEPS as LINKER_STEPS,
        DocumentState as DocumentState,
        MentionState as MentionState,
        Step as Step,
    )
    from biograft.linking.supervised import (
        FeatureExtractor as FeatureExtractor,
        MentionMemory as MentionMemory,
        Network as Network,
        TrainedRanker as TrainedRanker,
        assign_folds as assign_folds,
        feature_names as feature_names,
        load_trained_ranker as load_trained_ranker,
    )
    from biograft.linking.trained_configs import (
        GenerativeConfig as GenerativeConfig,
        GenerativeTraining as GenerativeTraining,
        NamesConfig as NamesConfig,
        RankerConfig as RankerConfig,
        RerankConfig as RerankConfig,
        RerankTraining as RerankTraining,
        StaticConfig as StaticConfig,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
