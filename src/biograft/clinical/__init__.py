"""Clinical text: what a note says about its mentions.

>>> from biograft.clinical import assert_status
>>> assert_status("No evidence of pneumonia.", [(15, 24)])[0].status
'absent'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.clinical.assertion import (
        AXES as AXES,
        STATUSES as STATUSES,
        Assertion as Assertion,
        AssertionModel as AssertionModel,
        RuleAssertions as RuleAssertions,
        Trigger as Trigger,
        as_absent as as_absent,
        assert_documents as assert_documents,
        assert_status as assert_status,
        status_of as status_of,
    )
    from biograft.clinical.measurements import (
        Measurement as Measurement,
        find_measurements as find_measurements,
    )
    from biograft.clinical.phrases import PhraseTrie as PhraseTrie
    from biograft.clinical.rules import (
        FLAGS as FLAGS,
        MORE_FLAGS as MORE_FLAGS,
        AssertionRules as AssertionRules,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
