"""The page of a lesson, or one line that says why there is none to show.

Must never import torch.
"""

from __future__ import annotations

from drills.catalog import Entry
from drills.errors import GraderFailed, WrongUse
from drills.study.page import Page, PageError
from drills.study.page import load as load_page


def load(lesson: Entry) -> Page:
    """The lesson's page. WrongUse if it is not there, GraderFailed if it is malformed."""
    try:
        return load_page(lesson.page)
    except PageError as error:
        more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
        raise GraderFailed(f"the page is malformed: content/{error.problems[0]}{more}") from None
    except OSError as error:
        raise WrongUse(f"content/{lesson.page.name} cannot be read: {error.strerror}") from None
