"""A flowchart as sentences."""

import pytest

from drills import catalog
from drills.study.diagram import sentences
from drills.study.markdown import fences

CHARTS = [
    block.text
    for lesson in catalog.lessons()
    if lesson.page.is_file()
    for block in fences(lesson.page.read_text(encoding="utf-8"))
    if block.info == "mermaid"
]


def test_nodes_arrows_and_what_stands_at_them():
    chart = """flowchart LR
    K["4 keys<br/>scores 1, 2"]
    K -->|"keys 0<br/>and 1"| A["state A<br/>v = 17<br/>s = 3"] --> M{{"merge"}}
    M --> B["done<br/>(lesson 4)"]
    K -.->|"at once"| B
"""
    assert sentences(chart) == [
        "4 keys (scores 1, 2)",
        "4 keys → state A (v = 17; s = 3): keys 0 and 1",
        "state A → merge",
        "merge → done (lesson 4)",
        "4 keys → done: (dotted) at once",
    ]


def test_groups_are_set_in_and_nodes_with_one_label_are_told_apart():
    chart = """flowchart LR
    subgraph tree["two by two"]
        direction LR
        a["1"] --> x{{"+"}} --> y{{"+"}}
    end
    subgraph loop
        b["1"] --> z{{"+"}}
        c["read:<br/>max"]
    end
"""
    assert sentences(chart) == ["two by two:", "  1 → + (x) → + (y)", "loop:", "  1 → +", "  read: max"]


@pytest.mark.parametrize("line", ["a ==> b", "a[round] --> b", "class a blue", "a -->", "a & b --> c"])
def test_what_is_not_known_is_not_guessed_at(line):
    assert sentences(f"flowchart LR\n    p --> q\n    {line}\n") == []


@pytest.mark.parametrize("chart", CHARTS, ids=range(len(CHARTS)))
def test_every_arrow_of_the_pages_is_told(chart):
    found = "\n".join(sentences(chart))
    assert found.count("→") >= chart.count("->") > 0
    assert not [sign for sign in ("<br/>", "-->", '"', "{{") if sign in found]
