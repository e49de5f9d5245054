"""A student's view of a batch holds nothing that was drawn from the secret seed, whatever the graded code does."""

import hashlib
import json
import os
import re

import class_of_strangers as strangers
import pytest
import tiny_lesson
import torch

from drills import source
from drills.batch import public
from drills.batch.settings import PUBLIC_SEED
from drills.report import problems
from drills.report.model import Grade, LessonResult
from drills.sandbox import isolation

ALL = os.environ.get("HOSTILE") == "all"
LEVELS = [one.name for one in isolation.probe() if one.holds]
STRONG = [name for name in LEVELS if name != "process"]


def inputs(seed):
    """What the tests of the tiny lesson draw from this seed."""
    for number in (5, 16, 33):
        test = f"{tiny_lesson.STEM}::test_twice_the_input[{number}]"
        digest = hashlib.sha256("\0".join([str(seed), tiny_lesson.STEM, test]).encode()).digest()
        rng = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        yield from torch.randn(number, generator=rng).tolist()


def spellings(value):
    """How a number may be written: with as many digits as a message has, and with all; twice it too."""
    for one in (value, 2 * value, value * value, 3 * value):
        yield f"{one:.6g}".lstrip("-")
    yield repr(value).lstrip("-")[:10]
    yield str(abs(int(value * 1e6)) % 1000 + 10**9)


@pytest.fixture(scope="module", params=(STRONG if ALL else STRONG[:1]) or LEVELS)
def graded(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("hidden")
    root = tiny_lesson.build(folder / "repository").root
    texts = {name: strangers.leaking(body) for name, body in strangers.LEAKS.items()}
    texts |= {"right": tiny_lesson.SOLUTION, "squared": strangers.changed(strangers.SQUARED)}
    subs = strangers.write(folder / "subs", **texts)
    code, place, said = strangers.grade(subs, folder / "out", strangers.settings(root, request.param), jobs=2)
    assert code == 1, (said, (place.logs / "workers.txt").read_text())
    return place


def public_texts(place):
    """Every file that is not the instructor's alone."""
    for path in sorted(place.root.rglob("*")):
        if path.is_file() and place.secret not in path.parents:
            yield path, path.read_text()


def test_every_leak_failed_and_says_something_useful(graded):
    for name in strangers.LEAKS:
        one = graded.read(name)
        assert one.problem == ""
        exercise = one.grade.lessons[0].exercises[0]
        assert exercise.state == "failed"
        failures = [test.failure for test in exercise.tests if test.outcome == "failed"]
        assert failures and all(failure.got for failure in failures), name
    assert graded.read("right").grade.lessons[0].exercises[0].state == "passed"


def test_the_hidden_inputs_are_in_the_instructors_copy(graded):
    """So that the next test can fail: the code did see them, and did say them."""
    text = (graded.hidden / "raiser.json").read_text()
    assert sum(f"{value:.6g}"[:7] in text for value in inputs(strangers.SECRET.value)) > 20


def test_no_public_text_holds_a_hidden_input(graded):
    words = {word for value in inputs(strangers.SECRET.value) for word in spellings(value) if len(word) > 6}
    public = {word for value in inputs(PUBLIC_SEED) for word in spellings(value)}
    for path, text in public_texts(graded):
        numbers = set(re.findall(r"\d+\.\d+(?:e-?\d+)?", text))
        found = {word for word in words - public if any(number.startswith(word) for number in numbers)}
        assert not found, (path, found)
    assert graded.secret.stat().st_mode & 0o077 == 0


def test_the_seed_is_in_no_public_text_and_its_hash_is_in_every_result(graded):
    for path, text in public_texts(graded):
        assert str(strangers.SECRET.value) not in text and strangers.SECRET.salt not in text.split('"'), path
    said = hashlib.sha256(f"salt:{strangers.SECRET.value}".encode()).hexdigest()
    assert json.loads(graded.batch.read_text())["seed_sha256"] == said
    assert all(one.made_with["seed_sha256"] == said for one in graded.submissions())


def test_messages_are_those_of_public_inputs(graded):
    printed = "".join(test.printed for test in graded.read("printer").grade.lessons[0].exercises[0].tests)
    assert any(f"{value:.4f}" in printed for value in inputs(PUBLIC_SEED))
    failures = [test.failure for test in graded.read("squared").grade.lessons[0].exercises[0].tests if test.failure]
    assert failures[0].mistake == "squared" and "=" in failures[0].got
    assert graded.read("squared").grade.seed == PUBLIC_SEED


def test_a_verdict_on_hidden_inputs_stands_where_public_ones_pass(tmp_path):
    """The code knows the public inputs by heart."""
    drawn = list(inputs(PUBLIC_SEED))
    firsts = (0.0, drawn[0], drawn[5], drawn[21])
    known = " | ".join(f"(tl.abs(tl.load(x_ptr) - ({one!r})) < 1e-5)" for one in firsts)
    crammed = ("2 * tl.load(x_ptr + i, mask=i < N)", f"tl.where({known}, 2 * tl.load(x_ptr + i, mask=i < N), 0.0)")
    root = tiny_lesson.build(tmp_path / "repository").root
    subs = strangers.write(tmp_path / "subs", crammer=strangers.changed(crammed))
    _, place, _ = strangers.grade(subs, tmp_path / "out", strangers.settings(root))
    exercise = place.read("crammer").grade.lessons[0].exercises[0]
    assert exercise.state == "failed"
    failures = [one.failure for one in exercise.tests if one.outcome == "failed"]
    hidden = [one for one in failures if "kept back" in one.likely]
    assert len(hidden) == 3 and {one.got for one in hidden} == {"wrong values"}
    assert "--seed 2" in hidden[0].likely


def test_a_file_that_is_no_text_is_called_by_its_own_name():
    """Not by where the worker has it, which means nothing to the student."""
    problem = problems.from_source(source.parse(b"# caf\xe9\n"), "submission/l91_tiny.py")
    lesson = LessonResult("l91_tiny", "Tiny", "submission/l91_tiny.py", "00", problem=problem)
    hidden = Grade("submission/", "cpu", {}, "bwrap", lessons=[lesson])
    (seen,) = public.view(hidden, None, "emil").lessons
    assert seen.problem.got == "l91_tiny.py is not UTF-8 text: save it with that encoding"
    assert seen.file == "emil/l91_tiny.py"
