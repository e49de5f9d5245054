"""Which kernel, in how many parts and with which tiles: what the launches decide from shapes and the GPU alone."""

import functools

import torch
import triton


@functools.cache
def gpu(device: torch.device):
    """Its properties, asked for once: the launches below look at them more often than they compute."""
    return torch.cuda.get_device_properties(device)


def multiprocessors(q: torch.Tensor) -> int:
    """Of the GPU; the interpreter is taken for a GPU of four, so that splits are seen there too."""
    return gpu(q.device).multi_processor_count if q.is_cuda else 4


def overlap(q: torch.Tensor) -> bool:
    """Whether the GPU can start a launch before the one ahead of it is over: Hopper and later."""
    return q.is_cuda and gpu(q.device).major >= 9


def tile(q: torch.Tensor, rows: int, keys: int, programs: int) -> dict:
    """Tile sizes, warps and pipeline depth of a launch of `programs` programs, each `rows` query rows and `keys` keys.

    From 64 rows on the matrix units work (wgmma takes 64 rows at least), and three tiles of K and V in flight pay; four
    where the launch leaves half of the multiprocessors to others, which then fill the memory's queues. Up to 16 rows
    are bound by memory: four tiles where each program has a multiprocessor to itself and many keys. Programs that do
    not all fit on the GPU at once hide each other's waiting: the smaller, the more of them run. 64 registers a thread
    let three of them run beside a program of 128 query rows.
    """
    block_d = max(16, triton.next_power_of_2(q.shape[2]))
    row_bytes = block_d * q.element_size()
    most = 128 if q.element_size() == 2 and row_bytes <= 256 else 64 if row_bytes <= 1024 else 16
    block_m = min(most, max(16, triton.next_power_of_2(rows)))
    crowd = block_m == 16 and programs > 2 * multiprocessors(q)
    block_n, stages = (64 if keys >= 512 else 32, 2) if crowd else (64, 3)
    half = 2 * programs <= multiprocessors(q)
    alone = programs <= multiprocessors(q) and not half and keys >= 512
    stages = 4 if (half if block_m >= 64 else alone) else stages
    config = {
        "D": q.shape[2],
        "BLOCK_M": block_m,
        "BLOCK_N": min(block_n, max(16, 16384 // row_bytes)),
        "BLOCK_D": block_d,
        "num_warps": 8 if block_m * block_d > 64 * 128 else 4,
        "num_stages": stages if row_bytes <= 256 else min(stages, 3) if row_bytes == 512 else 2,
    }
    if overlap(q) and block_n == 32 and q.element_size() == 2 and row_bytes == 256:
        config["maxnreg"] = 64
    return config


def row_blocks(q: torch.Tensor, rows: int) -> int:
    """How many blocks of query rows `rows` rows are."""
    return triton.cdiv(rows, tile(q, rows, 0, 0)["BLOCK_M"])


def copies(q: torch.Tensor, kv_heads: int) -> bool:
    """Whether attend_own_kernel can attend with q, if it can be described; it wants half of the multiprocessors."""
    return bulk(q) and 2 * q.shape[0] * kv_heads >= multiprocessors(q)


def bulk(q: torch.Tensor) -> bool:
    """Whether attend_bulk_kernel can attend with q, if the keys can be fetched: in half precision, on Hopper alone.

    Its matrix instructions are Hopper's; later GPUs have others.
    """
    hopper = q.is_cuda and gpu(q.device).major == 9
    return hopper and q.element_size() == 2 and q.stride(2) == 1


def two_blocks(q: torch.Tensor, kv_heads: int) -> bool:
    """Whether all requests have more query rows for a KV head than the 64 that one group of warps attends with."""
    return q.shape[0] * q.shape[1] > 64 * kv_heads


def fetches(q: torch.Tensor, groups: int, kv_heads: int) -> bool:
    """Whether attend_bulk_kernel is for a level of so many groups: for one, and for those of more than 16 rows."""
    return bulk(q) and (groups == 1 or triton.cdiv(q.shape[0], groups) * q.shape[1] > 16 * kv_heads)


def shared_splits(
    q: torch.Tensor, keys: int, kv_heads: int, other_keys: int, fetched: bool, copied: bool = False
) -> int:
    """In how many parts `keys` shared keys are cut, beside launches that read `other_keys` keys.

    fetched: by attend_bulk_kernel. copied: the others by attend_own_kernel. With many rows, fetched, the number with
    the least estimated time. Not fetched beside attend_own_kernel, as few as are over when all has been read: a program
    takes 20 ns a key, and 5 µs for start and end; what is read comes at 4.26 TB/s after 2.7 µs. Else one program on
    every multiprocessor, or on a half or a quarter of them where most, or nearly all, of the reading is elsewhere. No
    part is under 256 keys. Each is a state more to write, read and merge: 15 at most.
    """
    batch, heads, dim = q.shape
    most = max(1, min(keys // 256, 15))
    programs = row_blocks(q, batch * heads // kv_heads) * kv_heads
    key_bytes = kv_heads * dim * 4
    if copied and not fetched:
        reading = 2.7 + (keys + other_keys) * key_bytes / 4.26e6
        enough = (parts for parts in range(1, most) if 5 + 0.02 * keys / parts <= reading)
        return min(next(enough, most), max(1, multiprocessors(q) // max(1, programs)))
    if not two_blocks(q, kv_heads) or not fetched:
        rest = 0.25 if other_keys >= 8 * keys else 0.5 if other_keys >= 2 * keys else 1.0
        rest = 0.75 if fetched and keys <= other_keys < 2 * keys else rest
        return max(1, min(round(rest * multiprocessors(q) / max(1, programs)), most))
    return quickest(
        most, programs, multiprocessors(q), 512 * dim * keys, keys * key_bytes, other_keys * key_bytes, q.numel() * 8,
        15e3 if copied else 0,
    )  # fmt: skip


@functools.cache
def quickest(most, programs, processors, work, own_bytes, other_bytes, state_bytes, beside) -> int:
    """The number of parts, 1 to `most`, with the least estimated time. It depends on sizes alone, and is kept.

    A program of `work` operations, divided by the parts, takes a multiprocessor, 4.2 TFLOP/s. Those left over read
    50 GB/s each, the others `beside` bytes a microsecond, and what is not read by then is read at 4.26 TB/s.
    """

    def microseconds(parts: int) -> float:
        waves = triton.cdiv(programs * parts, processors)
        shared = 7 + waves * work / parts / 4.2e6
        busy = min(processors, programs * parts)
        left = other_bytes - ((processors - busy) * 50e3 + busy * beside) * shared
        reading = 5 + (other_bytes + own_bytes) / 4.26e6
        shared += max(0, left) / 4.26e6
        return max(shared, reading) + min(shared, reading) / 4 + parts * state_bytes / 4.26e6

    return min(range(1, most + 1), key=microseconds)


def own_splits(
    q: torch.Tensor, groups: int, keys: int, kv_heads: int, ahead: int = 0, behind: int = 0, copied: bool = False
) -> int:
    """In how many parts the `keys` keys of each of `groups` groups are cut. ahead, behind: keys that others read.

    A program on every multiprocessor where there are few; four, which hide each other's waiting, where there are many
    and not as much is to be read behind them, by others that hide it too; eight where those have a quarter of it at
    most, and as much is read ahead; sixteen where they are single warps. Four at most if they are copied by
    attend_own_kernel, which waits for nothing.
    """
    rows = triton.cdiv(q.shape[0], max(1, groups)) * q.shape[1] // kv_heads
    programs = max(1, groups * kv_heads * row_blocks(q, rows))
    if copied:
        return max(1, min(4 * multiprocessors(q) // programs, keys // 256, 15))
    warps = max(1, min(16 * multiprocessors(q) // programs, keys // 256))
    if rows == 1 and alone(q, programs * warps):
        return warps
    crowd = 4 if 2 * programs >= multiprocessors(q) and behind < groups * keys else 1
    crowd = 8 if crowd == 4 and 0 < 4 * behind <= groups * keys <= ahead else crowd
    return max(1, min(crowd * multiprocessors(q) // programs, keys // 128, 15))


def mean_keys(level: tuple, kv_cache: torch.Tensor) -> int:
    """Keys a group. Lengths are on the device; their mean, a hint, is not."""
    return level[2].shape[0] * kv_cache.shape[2] // max(1, level[1].shape[0] - 1)


def workspace(q: torch.Tensor, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """v[B, parts, Hq, D] and s[B, parts, Hq], float32, unwritten."""
    v = torch.empty(q.shape[0], parts, q.shape[1], q.shape[2], dtype=torch.float32, device=q.device)
    return v, torch.empty(v.shape[:3], dtype=torch.float32, device=q.device)


def results(v: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """v[B, Hq, D] in `dtype` and s[B, Hq] float32, unwritten, for the states v[B, N, Hq, D]."""
    batch, _, heads, dim = v.shape
    merged = torch.empty(batch, heads, dim, dtype=dtype, device=v.device)
    return merged, torch.empty(batch, heads, dtype=torch.float32, device=v.device)


def alone(q: torch.Tensor, programs: int) -> bool:
    """Whether a warp a program will do: with more than four programs a multiprocessor, enough is in flight."""
    return programs > 4 * multiprocessors(q)


def without_sign(q: torch.Tensor, scale: float | None) -> tuple[torch.Tensor, float]:
    """q and a scale of at least 0 that give the same scores. 1/sqrt(D) for None."""
    scale = q.shape[2] ** -0.5 if scale is None else scale
    return (q, scale) if scale >= 0 else (-q, -scale)


def launch_options(beside: bool) -> dict:
    """The launch attribute that lets a launch start beside the one ahead of it."""
    return {"launch_pdl": True} if beside else {}


def shared_tile(q: torch.Tensor, keys: int, kv_heads: int, parts: int, other_keys: int) -> int:
    """Keys a tile of attend_bulk_kernel for `keys` shared keys: 128 for many rows if programs are long, or else 64."""
    long = keys >= 8192 * parts or (keys >= 4096 * parts and other_keys <= keys)
    return 128 if two_blocks(q, kv_heads) and long else 64
