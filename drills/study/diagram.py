"""A page's flowcharts as sentences for a terminal: `4 keys → state A: keys 0 and 1`.

Reads the part of Mermaid that the pages use: nodes in ["…"] or {{"…"}}, arrows --> and -.->, subgraphs. A chart with
anything else gives no lines, never wrong ones. Must never print.
"""

from __future__ import annotations

import re
from collections import Counter

_NODE = re.compile(r'(\w+)(?:\["([^"]*)"\]|\{\{"([^"]*)"\}\})?')
_ARROW = re.compile(r'\s*(-->|-\.->)(?:\|"([^"]*)"\|)?\s*')
_GROUP = re.compile(r'subgraph\s+(\w+)(?:\["([^"]*)"\])?')
_SILENT = re.compile(r"flowchart\s+\w+|direction\s+\w+|")

Statement = tuple[list[str], list[str]]
"""Nodes in a chain, and the words at the arrow before each but the first."""


def sentences(source: str) -> list[str]:
    """One line an arrow, or a chain of arrows without words; those of a subgraph are set in below its title."""
    if not source.lstrip().startswith("flowchart"):
        return []
    labels: dict[str, str] = {}
    groups: dict[str, str] = {}
    parsed: list[tuple[int, str | Statement]] = []
    inside: list[str] = []
    for line in map(str.strip, source.split("\n")):
        group = _GROUP.fullmatch(line)
        if group:
            parsed.append((len(inside), f"{group[2] or group[1]}:"))
            inside.append(group[1])
        elif line == "end" and inside:
            inside.pop()
        elif not _SILENT.fullmatch(line):
            statement = _statement(line, labels)
            if statement is None:
                return []
            for node in statement[0]:
                groups.setdefault(node, "".join(inside[-1:]))
            parsed.append((len(inside), statement))
    names = _names(labels, groups)
    found: list[str] = []
    for depth, one in parsed:
        lines = [one] if isinstance(one, str) else _told(one, names)
        found += ["  " * depth + text for text in lines]
    return found


def _statement(line: str, labels: dict[str, str]) -> Statement | None:
    """A chain of nodes; their labels are noted. None if it is anything else."""
    nodes: list[str] = []
    words: list[str] = []
    at = 0
    while True:
        node = _NODE.match(line, at)
        if node is None:
            return None
        nodes.append(node[1])
        label = node[2] if node[2] is not None else node[3]
        if label is not None:
            labels[node[1]] = label
        else:
            labels.setdefault(node[1], node[1])
        at = node.end()
        if at == len(line):
            return nodes, words
        arrow = _ARROW.match(line, at)
        if arrow is None:
            return None
        dotted = "(dotted) " if arrow[1] == "-.->" else ""
        words.append(dotted + " ".join((arrow[2] or "").replace("<br/>", " ").split()))
        at = arrow.end()


def _names(labels: dict[str, str], groups: dict[str, str]) -> dict[str, list[str]]:
    """What each node is called the first time and later, the last of it for good.

    Later by its label's first line, or by all of it, whichever no other node of its group has; else with its own name.
    """
    lines = {node: [line.strip() for line in label.split("<br/>")] for node, label in labels.items()}
    first = Counter((groups[node], its[0]) for node, its in lines.items())
    whole = Counter((groups[node], " ".join(its)) for node, its in lines.items())
    found: dict[str, list[str]] = {}
    for node, its in lines.items():
        if first[groups[node], its[0]] == 1 and its[0][-1:] not in (",", ":"):
            more = "; ".join(its[1:])
            more = f" {more}" if more.startswith("(") else f" ({more})" if more else ""
            found[node] = [its[0] + more, its[0]]
        else:
            found[node] = [" ".join(its) + (f" ({node})" if whole[groups[node], " ".join(its)] > 1 else "")]
    return found


def _told(statement: Statement, names: dict[str, list[str]]) -> list[str]:
    """The sentences of a chain."""
    nodes, words = statement
    found = [_called(nodes[0], names)]
    before, worded = "", False
    for node, label in zip(nodes[1:], words, strict=True):
        if before and (label or worded):
            found.append(_called(before, names))
        before, worded = node, bool(label)
        found[-1] += f" → {_called(node, names)}" + (f": {label}" if label else "")
    return found


def _called(node: str, names: dict[str, list[str]]) -> str:
    return names[node].pop(0) if len(names[node]) > 1 else names[node][0]
