"""A graded file is read, never run, and nothing that is in it makes the reader raise."""

import os

import pytest

from drills import source

STUB = '''\
import torch


def helper(x):
    return x


def one(x):
    """Says what."""
    raise NotImplementedError("one: your turn")


def two(x):
    y = helper(x)
    raise NotImplementedError("two: your turn")
'''


def look(tmp_path, data):
    path = tmp_path / "l9_small.py"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return source.inspect(path, ("one", "two"), STUB)


def states(found):
    return [function.state for function in found.functions]


def test_the_stub_itself_is_untouched(tmp_path):
    found = look(tmp_path, STUB)
    assert states(found) == ["untouched", "untouched"]
    assert [function.line for function in found.functions] == [8, 13]
    assert len(found.sha256) == 64


@pytest.mark.parametrize(("opening", "closing"), [("1 + ", "1"), ("not ", "1"), ("x", "()"), ("1 if x else ", "1")])
def test_a_chain_of_any_length_is_read_or_too_deep(tmp_path, opening, closing):
    """Some lengths Python itself parses, and has then no stack left to show the tree."""
    assert states(look(tmp_path, STUB.replace("y = helper(x)", f"y = {opening * 100}{closing}")))[1] == "written"
    for count in (250, *range(900, 1000)):
        chain = "x" + closing * count if opening == "x" else opening * count + closing
        assert "too deeply" in look(tmp_path, STUB.replace("y = helper(x)", f"y = {chain}")).problem.says


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("import torch", "import torch  # noted"),
        ('    """Says what."""\n', ""),
        ("Says what.", "My own words."),
        ("def one(x):", "def one(x: torch.Tensor) -> torch.Tensor:"),
        ("    return x\n", "    return 2 * x\n"),
        ('    raise NotImplementedError("one: your turn")', "    # soon\n    raise NotImplementedError"),
        ("    ", "\t"),
    ],
)
def test_formatting_comments_and_helpers_are_no_start(tmp_path, old, new):
    assert states(look(tmp_path, STUB.replace(old, new))) == ["untouched", "untouched"]


def test_a_bom_is_no_start(tmp_path):
    assert states(look(tmp_path, b"\xef\xbb\xbf" + STUB.encode())) == ["untouched", "untouched"]


def test_a_changed_body_is_a_start_of_that_exercise_only(tmp_path):
    written = STUB.replace('raise NotImplementedError("two: your turn")', "return y")
    assert states(look(tmp_path, written)) == ["untouched", "written"]


def test_code_before_the_raise_is_a_start(tmp_path):
    written = STUB.replace('    raise NotImplementedError("one', '    print(x)\n    raise NotImplementedError("one')
    assert states(look(tmp_path, written)) == ["written", "untouched"]


def test_a_renamed_function_is_missing(tmp_path):
    assert states(look(tmp_path, STUB.replace("def one", "def won"))) == ["missing", "untouched"]


@pytest.mark.parametrize(
    "binding", ["one = helper", "one: object = helper", "from math import exp as one", "if True:\n    def one(x): pass"]
)
def test_a_name_bound_in_another_way_counts_as_written(tmp_path, binding):
    found = look(tmp_path, STUB.replace("def one", "def won") + binding + "\n")
    assert states(found) == ["written", "untouched"]


def test_a_star_import_may_hold_anything(tmp_path):
    assert states(look(tmp_path, "from math import *\n")) == ["written", "written"]


def test_the_last_definition_counts(tmp_path):
    assert states(look(tmp_path, STUB + "\n\ndef one(x):\n    return x\n")) == ["written", "untouched"]


def test_a_syntax_error_has_a_line_and_a_caret(tmp_path):
    found = look(tmp_path, STUB.replace("y = helper(x)", "y = helper(x))"))
    assert (found.problem.kind, found.problem.line) == ("syntax", 14)
    assert found.problem.caret() == "y = helper(x))\n             ^"
    assert found.sha256


def test_the_caret_stands_right_after_tabs_too(tmp_path):
    found = look(tmp_path, "def one(x):\n\t\ty = x)\n")
    assert found.problem.caret() == "y = x)\n     ^"


@pytest.mark.parametrize(
    "data",
    [
        b"return 1\n",
        b"x = 1\n\0",
        b"\xff\xfex\x00",
        b"# \xe9\n",
        b"def f():\n\tx\n        y\n",
        b"x = " + b"(" * 5000,
        b"# coding: nonsense\n",
        b"'''",
        b"x = " + b"-" * 100_000 + b"1",
    ],
)
def test_whatever_is_in_the_file_is_a_problem_and_no_exception(tmp_path, data):
    found = look(tmp_path, data)
    assert found.problem.kind == "syntax"
    assert found.problem.says
    assert found.problem.caret() is not None


def test_a_file_that_is_not_there_is_missing(tmp_path):
    assert source.inspect(tmp_path / "no.py", ("one",), STUB).problem.kind == "missing"


def test_a_folder_a_pipe_and_a_huge_file_are_unreadable(tmp_path):
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    with open(tmp_path / "huge.py", "wb") as file:
        file.truncate(source.LARGEST + 1)
    for name in ("folder.py", "pipe.py", "huge.py"):
        assert source.inspect(tmp_path / name, ("one",), STUB).problem.kind == "unreadable"


def test_an_empty_file_lacks_every_exercise(tmp_path):
    assert states(look(tmp_path, b"")) == ["missing", "missing"]


@pytest.mark.parametrize("data", ["x = 1\n".encode("utf-16"), b"# caf\xe9\nx = 1\n"])
def test_another_encoding_is_told_so(data):
    assert source.parse(data).says == "is not UTF-8 text: save it with that encoding"


def test_an_encoding_that_nobody_knows_is_named():
    assert "unknown encoding: klingon" in source.parse(b"# -*- coding: klingon -*-\nx = 1\n").says
