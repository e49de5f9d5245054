"""The launches: what the copy engine is told, and the arguments of each kernel."""

import torch
import triton
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from solutions.fast_cascade.attend_alone import attend_alone_kernel
from solutions.fast_cascade.attend_bulk import attend_bulk_kernel
from solutions.fast_cascade.attend_own import attend_own_kernel
from solutions.fast_cascade.attend_plain import attend_paged_kernel, attend_shared_kernel
from solutions.fast_cascade.sizes import (
    alone,
    bulk,
    fetches,
    launch_options,
    mean_keys,
    multiprocessors,
    overlap,
    row_blocks,
    tile,
)

LOG2E = 1.4426950408889634


def rows_descriptor(x: torch.Tensor, rows: int, row_stride: int, heads: int, head_stride: int, block: int):
    """Of x seen as `rows` rows of all heads; a fetch is `block` rows of one head. None if the copy engine cannot do it.

    It wants columns without gaps, steps of 16 bytes and 32-bit coordinates, and its swizzle repeats every 8 rows.
    """
    dim = x.shape[-1]
    cols = (heads - 1) * head_stride + dim
    steps = [x.data_ptr(), row_stride * x.element_size(), head_stride * x.element_size()]
    fits = x.element_size() == 2 and dim in (64, 128) and x.stride(-1) == 1 and all(step % 16 == 0 for step in steps)
    if not fits or block % 8 or block & (block - 1) or row_stride <= 0 or not 0 < rows < 2**31 or cols >= 2**31:
        return None
    layout = gl.NVMMASharedLayout.get_default_for([block, dim], gl.float16)
    return TensorDescriptor(x, [rows, cols], [row_stride, 1], [block, dim], layout)


def described_pages(kv_cache: torch.Tensor):
    """kv_cache as rows: a descriptor, the rows from page to page and from keys to values. None if it cannot be."""
    pages, _, page, kv_heads, _ = kv_cache.shape
    kv_p, kv_2, kv_n, kv_h, _ = kv_cache.stride()
    if not 0 < page <= 64 or not pages or kv_n <= 0 or kv_p % kv_n or kv_2 % kv_n:
        return None
    rows = ((pages - 1) * kv_p + kv_2) // kv_n + page
    described = rows_descriptor(kv_cache, rows, kv_n, kv_heads, kv_h, page)
    return None if described is None else (described, kv_p // kv_n, kv_2 // kv_n)


def described_own(q: torch.Tensor, kv_cache: torch.Tensor):
    """What attend_own_kernel fetches: q as rows, the rows from request to request, and kv_cache. None if it cannot."""
    group = q.shape[1] // kv_cache.shape[3]
    q_b, q_h, _ = q.stride()
    pages = described_pages(kv_cache) if bulk(q) and group <= 16 else None
    if pages is None or q_h <= 0 or q_b % q_h:
        return None
    rows = (q.shape[0] - 1) * (q_b // q_h) + q.shape[1]
    described = rows_descriptor(q, rows, q_h, 1, 0, 8 if group <= 8 else 16)
    return None if described is None else (described, q_b // q_h, *pages)


def launch_bulk(q, k, v, kv_heads, block, groups, tables, page, scale, v_out, s_out, beside, **arguments) -> None:
    """Launch attend_bulk_kernel with tiles of `block` keys: 64, or 128, which leave others less of the registers.

    Two groups of warps that hold 64 rows of Q each need 176 registers a thread: with fewer, products wait in turn.
    """
    batch, heads, dim = q.shape
    rows, parts = batch * heads // kv_heads, v_out.shape[1]
    consumers = 1 if rows <= 64 * groups else 2
    stages, registers, most = (2, 192, 136) if block == 128 else (3, 176, 128 if consumers == 2 else 104)
    blocks = triton.cdiv(rows, 64 * consumers) if groups == 1 else rows // (64 * consumers) + groups + 1
    attend_bulk_kernel[(blocks, kv_heads, parts)](
        q, k, v, *tables, v_out, s_out, scale * LOG2E, B=batch, groups=groups, HEADS=heads,
        N=v_out.stride(0) // (heads * dim), q_b=q.stride(0), q_h=q.stride(1), PAGE=page, GROUPED=groups > 1, D=dim,
        CONSUMERS=consumers, BLOCK_N=block, STAGES=stages, REGISTERS=registers, BESIDE=beside, num_warps=4,
        maxnreg=most, **arguments, **launch_options(beside),
    )  # fmt: skip


def launch_shared(q, k, v, scale, v_out, s_out, beside, fetched, tables=None) -> None:
    """Attend to the shared keys; v_out and s_out are slices [:, a:b] of a workspace, one state a split.

    beside: the launch ahead is this call's own, so this one may start before it is over. fetched: by the copy engine,
    if it can, in tiles of so many keys. tables: indptr, indices and last_page_len that the next launch begins with,
    which the plain kernel then has in L2 by then.
    """
    batch, heads, dim = q.shape
    kv_heads, parts = k.shape[1], v_out.shape[1]
    group, keys = heads // kv_heads, k.shape[0] // parts
    if fetched and scale > 0:  # a score that does not count is -inf, and 0 * -inf is NaN
        described = [rows_descriptor(x, x.shape[0], x.stride(0), kv_heads, x.stride(1), fetched) for x in (k, v)]
        if None not in described:
            launch_bulk(
                q, *described, kv_heads, fetched, 1, (q,) * 4, 0, scale, v_out, s_out, beside, P=k.shape[0],
                k_h=k.stride(1), v_h=v.stride(1), page_rows=0, v_row=0,
            )  # fmt: skip
            return
    blocks = row_blocks(q, batch * group)
    config = tile(q, batch * group, keys, blocks * kv_heads * parts)
    if overlap(q) and q.dtype == torch.bfloat16 and dim == 128 and config["BLOCK_M"] == 64:
        config["maxnreg"] = 136  # of 166, so that 2,048 single warps of 84 fit beside 128 of these programs
    attend_shared_kernel[(blocks, kv_heads, parts)](
        q, k, v, v_out, s_out, *(tables or (q, q, q)), scale * LOG2E, batch, k.shape[0], heads,
        v_out.stride(0) // (heads * dim), tables[1].shape[0] if tables else 0,
        *q.stride(), *k.stride(), *v.stride(), G=group, BESIDE=beside and overlap(q), OVERLAP=overlap(q),
        TOUCH=tables is not None, **config, **launch_options(beside and overlap(q)),
    )  # fmt: skip


def launch_own(
    q, described, kv_cache, level, scale, v_out, s_out, beside, taken=0, slots=3, tight=False, merged=None
) -> None:
    """Attend to each request's pages by attend_own_kernel. described: by described_own; level: as below.

    merged: v and s of the results, if this is the last launch and has the last state of each row; it merges then.

    Three slots are 55 KB: two programs fit on a multiprocessor, or one beside two groups of warps that attend to shared
    keys, which `taken` multiprocessors have, and which leave 56 registers a thread. Of those programs no more are
    launched than have equally many items. If one at a time is all that fits and reading takes long, five slots keep
    more on its way. tight: beside tiles of 128 keys, which leave room for three slots and 13,300 registers.
    """
    batch, heads, dim = q.shape
    q_rows, q_step, kv_rows, page_step, v_step = described
    group_indptr, indptr, indices, last_page_len = (x if x is None else x.contiguous() for x in level)
    page, kv_heads, parts = *kv_cache.shape[2:4], v_out.shape[1]
    items = batch * kv_heads * parts
    room = multiprocessors(q) + max(0, multiprocessors(q) - taken if slots == 3 else 0)
    programs = max(min(items, room), triton.cdiv(items, 128))
    programs = triton.cdiv(items, triton.cdiv(items, programs))
    states = v_out.stride(0) // (heads * dim)
    attend_own_kernel[(programs,)](
        q_rows, kv_rows, indptr if group_indptr is None else group_indptr, indptr, indices, last_page_len, v_out, s_out,
        *(merged or (v_out, s_out)), scale * LOG2E, items, batch, indptr.shape[0] - 1, parts, heads, states, q_step,
        kv_cache.stride(3), page_step, v_step, PAGE=page, GROUPED=group_indptr is not None, HKV=kv_heads,
        G=heads // kv_heads, D=dim, CUT=parts > 1, BLOCK_M=q_rows.block_shape[0], SLOTS=slots,
        MERGED=states if merged else 0, BESIDE=beside, num_warps=4, FETCHING=40 if merged else 24,
        maxnreg=64 if merged else 48 if tight else 56, **launch_options(beside),
    )  # fmt: skip


def launch_paged(q, kv_cache, level, scale, v_out, s_out, beside, fetched=0) -> None:
    """Attend to one level's pages: (group_indptr or None, kv_indptr, kv_indices, kv_last_page_len); else as above.

    fetched: attend_bulk_kernel runs beside it. Programs that come in many rounds then have 48 registers: four fit. If
    it does not, nothing keeps small programs from being one warp each, with two tiles of 16 keys in flight.
    """
    batch, heads, dim = q.shape
    group_indptr, indptr, indices, last_page_len = (x if x is None else x.contiguous() for x in level)
    groups, page, kv_heads, parts = indptr.shape[0] - 1, *kv_cache.shape[2:4], v_out.shape[1]
    group = heads // kv_heads
    rows = group if group_indptr is None else triton.cdiv(batch, groups) * group
    programs = groups * row_blocks(q, rows) * kv_heads * parts
    tables = (indptr if group_indptr is None else group_indptr, indptr, indices, last_page_len)
    apart = v_out.stride(0) // (heads * dim)
    sides = {"BESIDE": beside and overlap(q), "OVERLAP": overlap(q), **launch_options(beside and overlap(q))}
    if rows == 1 and alone(q, programs):
        block_d = triton.next_power_of_2(dim)
        attend_alone_kernel[(kv_heads, batch, parts)](
            q, kv_cache, *tables, v_out, s_out, scale * LOG2E, groups, heads, apart, *q.stride(), *kv_cache.stride(),
            PAGE=page, GROUPED=group_indptr is not None, D=dim, BLOCK_N=max(1, 1024 // block_d), BLOCK_D=block_d,
            num_warps=1, **sides,
        )  # fmt: skip
        return
    wanted = group_indptr is not None and scale > 0 and fetches(q, groups, kv_heads)
    described = described_pages(kv_cache) if wanted else None
    if described is not None:
        kv_rows, page_step, v_step = described
        launch_bulk(
            q, kv_rows, kv_rows, kv_heads, 64, groups, tables, page, scale, v_out, s_out, beside, P=0,
            k_h=kv_cache.stride(3), v_h=kv_cache.stride(3), page_rows=page_step, v_row=v_step,
        )  # fmt: skip
        return
    config = tile(q, rows, mean_keys(level, kv_cache) // parts, programs)
    if "maxnreg" in config and not fetched:
        config |= {"BLOCK_N": 16, "num_stages": 3, "num_warps": 1, "maxnreg": 128}
    elif "maxnreg" in config and programs > 8 * multiprocessors(q):
        config["maxnreg"] = 48
    if group_indptr is None:
        slots = groups * triton.cdiv(group, config["BLOCK_M"])
    else:
        slots = batch * group // config["BLOCK_M"] + groups + 1
    attend_paged_kernel[(kv_heads, slots, parts)](
        q, kv_cache, *tables, v_out, s_out, scale * LOG2E, batch, groups, heads, apart, *q.stride(),
        *kv_cache.stride(), PAGE=page, GROUPED=group_indptr is not None, G=group, **config, **sides,
    )  # fmt: skip
