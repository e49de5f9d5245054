"""The fast merge of many states gives what the oracle gives, and passes the lesson's own tests at every level.

Its states are fetched ahead on Hopper GPUs alone.
"""

import pytest
from fast_versions import DEVICES, agrees, passes_the_lesson

from drills import catalog

LESSON = catalog.find("l4").lesson

SCRIPT = """
def merged(S, N, H, D, ahead, dtype=torch.float16, scale=1.0, offset=0):
    v = normal(S * N * H * D + offset, dtype=dtype)[offset:].view(S, N, H, D)
    s = scale * normal(S, N, H)
    if N > 1:
        s[0, : N // 2], s[-1, N // 3 :, 0] = float("-inf"), float("-inf")
        v[0, 0], v[-1, -1, 0] = float("nan"), float("nan")
    if S > 1 and H > 1:
        s[1, :, 1] = float("-inf")  # nothing but empty states
    assert fast.fetches_ahead(moved(v)) == ahead, v.shape
    right("merge_states", v, s)


merged(2, 5, 3, 20, False)
merged(3, 40, 2, 64, False, torch.float32)
merged(1, 70, 2, 128, False, torch.bfloat16)
if hopper:
    merged(16, 1024, 32, 128, True)  # a warp a row
    merged(16, 1000, 32, 128, True, torch.bfloat16)
    merged(16, 1024, 32, 128, False, offset=4)  # rows begin in the midst of 16 bytes
    merged(2, 300, 130, 64, True, torch.bfloat16, 30.0)  # two
    merged(150, 131, 1, 256, True, scale=3000.0)  # four
    fast.ROWS, fast.MANY = range(1, 1024), 1
    for D in (64, 128, 256):  # steps of 32, 16 and 8 states a warp, four in shared memory
        for N in (1, 7, 8, 9, 31, 32, 33, 65, 96, 97):
            merged(2, N, 256, D, True)
        for N in (1, 31, 127, 128, 129, 500, 1001):
            merged(2, N, 3, D, True)
    merged(2, 0, 3, 128, False)
"""


def test_it_has_the_two_exercises_that_take_many_states():
    assert LESSON.fast_exercises == ("merge_states", "variable_length_merge_states")


@pytest.mark.skipif(not LESSON.fast.is_file(), reason=catalog.NOT_HERE)
@pytest.mark.parametrize("device", DEVICES)
def test_the_fast_merge_agrees_with_the_oracle(device):
    agrees(LESSON, SCRIPT, device)


@pytest.mark.skipif(not LESSON.fast.is_file(), reason=catalog.NOT_HERE)
def test_it_passes_what_a_learner_has_to_pass(tmp_path):
    passes_the_lesson(LESSON, tmp_path)
