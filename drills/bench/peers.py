"""Other implementations of the same functions, measured beside ours where they are installed.

Each takes an exercise's arguments and answers with a call that does the same work; whatever a library prepares once
(plans, workspaces, other layouts) is prepared before, and not timed. Peers are not judged: only ours are checked.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

Call = Callable[[], object]

WORKSPACE = 256 << 20
"""Bytes of scratch memory that FlashInfer's wrappers are given."""


@dataclass(frozen=True)
class Peer:
    """One function of one library. build: the exercise's arguments → a call of no arguments."""

    name: str
    module: str
    exercise: str
    build: Callable[..., Call]

    @property
    def installed(self) -> bool:
        """Whether its library is there; found without importing it."""
        return importlib.util.find_spec(self.module) is not None


def _flashinfer_merge_state(v_a, s_a, v_b, s_b) -> Call:
    import flashinfer

    return lambda: flashinfer.merge_state(v_a, s_a, v_b, s_b)


def _flashinfer_in_place(v, s, v_other, s_other, mask=None) -> Call:
    import flashinfer

    return lambda: flashinfer.merge_state_in_place(v, s, v_other, s_other, mask)


def _flashinfer_merge_states(v, s) -> Call:
    import flashinfer

    return lambda: flashinfer.merge_states(v, s)


def _xformers_merge_states(v, s) -> Call:
    """xformers takes [parts, B, M, heads, D], natural LSE [parts, B, heads, M]; here B = 1."""
    from xformers.ops.fmha import merge_attentions

    parts = v.transpose(0, 1)[:, None].contiguous()
    lse = (s * math.log(2)).permute(1, 2, 0)[:, None].contiguous()
    return lambda: merge_attentions(parts, lse)


def _plan_cascade(q, kv_cache, levels) -> Call:
    import flashinfer

    heads, dim, kv_heads = q.shape[1], q.shape[2], kv_cache.shape[3]
    scratch = torch.empty(WORKSPACE, dtype=torch.uint8, device=q.device)
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(len(levels), scratch, "NHD")
    columns = [list(column) for column in zip(*levels, strict=True)]
    wrapper.plan(*columns, heads, kv_heads, dim, kv_cache.shape[2], q_data_type=q.dtype)
    return lambda: wrapper.run(q, kv_cache)


def _as_levels(q, k_shared, v_shared, kv_cache, indptr, indices, last_page_len):
    """`cascade`'s arguments as a cache that holds the prefix too, with the prefix's pages first. P: whole pages."""
    page = kv_cache.shape[2]
    shared = torch.stack([k_shared, v_shared], 1).unflatten(0, (-1, page)).transpose(1, 2)
    pages = torch.arange(shared.shape[0], dtype=torch.int32, device=q.device)
    whole = torch.cat([shared, kv_cache])
    ends = torch.tensor([0, len(q)], dtype=torch.int32, device=q.device)
    first = torch.tensor([0, len(pages)], dtype=torch.int32, device=q.device)
    full = torch.tensor([page], dtype=torch.int32, device=q.device)
    alone = torch.arange(len(q) + 1, dtype=torch.int32, device=q.device)
    own = (alone, indptr, indices + len(pages), last_page_len)
    return whole, [(ends, first, pages, full), own]


def _flashinfer_cascade(q, *rest) -> Call:
    return _plan_cascade(q, *_as_levels(q, *rest))


def _flashinfer_decode(q, *rest) -> Call:
    """Decode without cascade: every request's table begins with the prefix's pages."""
    import flashinfer

    kv_cache, ((_, _, prefix, _), (_, indptr, indices, last)) = _as_levels(q, *rest)
    own = [indices[int(a) : int(b)] for a, b in zip(indptr, indptr[1:], strict=False)]
    table = torch.cat([part for pages in own for part in (prefix, pages)])
    ends = indptr + len(prefix) * torch.arange(len(q) + 1, dtype=torch.int32, device=q.device)
    heads, dim, kv_heads = q.shape[1], q.shape[2], kv_cache.shape[3]
    scratch = torch.empty(WORKSPACE, dtype=torch.uint8, device=q.device)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(scratch, "NHD", use_tensor_cores=heads // kv_heads >= 4)
    wrapper.plan(ends, table, last, heads, kv_heads, dim, kv_cache.shape[2], q_data_type=q.dtype)
    return lambda: wrapper.run(q, kv_cache)


def _plain_merge(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The formula, as one writes it in torch: v[S, N, H, D], s[S, N, H]."""
    total = torch.logsumexp(s * math.log(2), 1, keepdim=True) / math.log(2)
    return (torch.exp2(s - total)[..., None] * v).sum(1).to(v.dtype), total[:, 0]


def _plain_merge_two(v_a, s_a, v_b, s_b):
    return _plain_merge(torch.stack([v_a, v_b], 1), torch.stack([s_a, s_b], 1))


def _plain_softmax(x):
    return torch.softmax(x, -1)


def _eager(function) -> Callable[..., Call]:
    return lambda *args: lambda: function(*args)


def _compiled(function) -> Callable[..., Call]:
    def build(*args) -> Call:
        compiled = torch.compile(function, dynamic=True)
        return lambda: compiled(*args)

    return build


PEERS = (
    Peer("FlashInfer", "flashinfer", "merge_state", _flashinfer_merge_state),
    Peer("FlashInfer", "flashinfer", "merge_state_in_place", _flashinfer_in_place),
    Peer("FlashInfer", "flashinfer", "merge_states", _flashinfer_merge_states),
    Peer("xformers", "xformers", "merge_states", _xformers_merge_states),
    Peer("FlashInfer cascade", "flashinfer", "cascade", _flashinfer_cascade),
    Peer("FlashInfer decode", "flashinfer", "cascade", _flashinfer_decode),
    Peer("FlashInfer cascade", "flashinfer", "multi_level_cascade", _plan_cascade),
    *(
        Peer(name, "torch", exercise, how(function))
        for exercise, function in (
            ("merge_state", _plain_merge_two),
            ("merge_states", _plain_merge),
            ("softmax", _plain_softmax),
        )
        for name, how in (("torch", _eager), ("torch.compile", _compiled))
    ),
)


def peers_of(exercise: str) -> list[Peer]:
    """The peers of an exercise that are installed here."""
    return [peer for peer in PEERS if peer.exercise == exercise and peer.installed]
