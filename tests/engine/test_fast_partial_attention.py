"""The fast partial attention gives what the oracle gives, and passes the lesson's own tests at every level.

Its keys and values are fetched ahead on Hopper GPUs alone.
"""

import pytest
from fast_versions import DEVICES, agrees, passes_the_lesson

from drills import catalog

LESSON = catalog.find("l2").lesson
pytestmark = pytest.mark.skipif(not LESSON.fast.is_file(), reason=catalog.NOT_HERE)

SCRIPT = """
def attended(L, H, D, parts, ahead, dtype=torch.float16, view=lambda x: x, scale=None):
    k, v = (view(normal(L, H, D, dtype=dtype)) for _ in range(2))
    q = normal(*k.shape[1:], dtype=dtype)
    assert fast.fetches_ahead(moved(k), moved(v), parts) == ahead, k.shape
    right("partial_attention", q, k, v, parts, scale)


attended(37, 3, 20, 4, False)
attended(9, 2, 16, 5, False, torch.bfloat16)
attended(40, 2, 64, 3, False, torch.float32)
if hopper:
    attended(8192, 32, 128, 16, True)  # a warp a program
    attended(8191, 32, 128, 8, True, torch.bfloat16)  # two
    attended(8100, 32, 128, 4, True)  # four
    attended(8192, 32, 128, 2, False)
    fast.FEWEST = 1
    attended(500, 3, 64, 7, True, scale=-0.7)
    attended(500, 3, 256, 7, True, scale=9.0)
    for H in (2, 260, 512):  # four warps, two, one
        for L in (1, 15, 16, 17, 31, 33, 47, 48, 49, 130):
            attended(L, H, 128, 1, True)
        attended(20, H, 128, 9, True)  # parts of few keys, and of none
    attended(0, 2, 128, 3, True)
    attended(90, 6, 128, 2, True, view=lambda x: x[:, ::2])  # heads that lie apart
    attended(6, 90, 128, 2, True, view=lambda x: x.transpose(0, 1))
    attended(90, 3, 136, 2, True, view=lambda x: x[:, :, 8:])
    attended(90, 3, 132, 2, False, view=lambda x: x[:, :, 4:])  # rows that begin in the midst of 16 bytes
    attended(90, 3, 256, 2, False, view=lambda x: x[:, :, ::2])
"""


@pytest.mark.parametrize("device", DEVICES)
def test_the_fast_partial_attention_agrees_with_the_oracle(device):
    agrees(LESSON, SCRIPT, device)


def test_it_passes_what_a_learner_has_to_pass(tmp_path):
    assert LESSON.fast_exercises == ("partial_attention",)
    passes_the_lesson(LESSON, tmp_path)
