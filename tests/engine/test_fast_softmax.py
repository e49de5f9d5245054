"""The fast softmax gives what the oracle gives, and is as good as the lesson's for whoever grades it.

Rows are kept on Hopper GPUs alone. Rows as long as that kernel asks for are tried few at a time.
"""

import pytest
from fast_versions import DEVICES, agrees, passes_the_lesson

from drills import catalog

LESSON = catalog.find("l1").lesson
pytestmark = pytest.mark.skipif(not LESSON.fast.is_file(), reason=catalog.NOT_HERE)

SCRIPT = """
def kept(x, keeps, view=lambda x: x):
    x = view(x)
    assert fast.keeps_rows(moved(x)) == keeps, x.shape
    right("softmax", x)


def scores(M, N, dtype=torch.float16, scale=1.0):
    x = scale * torch.randn(M, N, generator=rng)
    x[0] = float("-inf")
    x[1, : N // 2] = float("-inf")
    return x.to(dtype)


kept(scores(3, 3000), False)
kept(scores(2, 33000, torch.bfloat16), False)
kept(scores(2, 20000, torch.float32), False)
kept(scores(3, 3004), False)  # rows of a multiple of 4, and of 8
kept(scores(3, 17000, torch.bfloat16), False)
kept(scores(3, 2056), False, lambda x: x[:, 8:])
kept(scores(3, 2056), False, lambda x: x[:, 3:-1])
assert fast.softmax(torch.empty(0, 9, device=device)).shape == (0, 9)
assert fast.softmax(torch.empty(9, 0, device=device)).shape == (9, 0)
if hopper:
    kept(scores(64, 327688), True)  # L2 has not room for it
    kept(scores(4, 131072), False)
    fast.FEWEST, fast.IN_CACHE = 1, 0
    C = fast.CHUNK
    kept(scores(3, 15 * C), True)  # all of it is kept
    kept(scores(3, 14 * C + 8, torch.bfloat16), True)  # a last chunk of 8 columns
    kept(scores(3, 26 * C), True)  # just all of it
    kept(scores(3, 26 * C + 8, scale=20.0), True)  # a chunk is fetched again
    kept(scores(3, 32 * C, torch.bfloat16, scale=20.0), True)
    kept(scores(2, 40 * C, scale=9000.0), True)  # every slot is filled again
    kept(scores(2, 73 * C - 24), True)  # and again
    kept(scores(3, 20 * C), True, lambda x: x[:, 8:])  # rows that lie apart
    kept(scores(3, 20 * C), False, lambda x: x[:, 4:-4])  # rows that begin in the midst of 16 bytes
    kept(scores(3, 20 * C), False, lambda x: x[:, 8:-4])
    kept(scores(20 * C, 3), False, lambda x: x.T)
"""


@pytest.mark.parametrize("device", DEVICES)
def test_the_fast_softmax_agrees_with_the_oracle(device):
    agrees(LESSON, SCRIPT, device)


def test_it_passes_what_a_learner_has_to_pass(tmp_path):
    assert LESSON.fast_exercises == ("softmax",)
    passes_the_lesson(LESSON, tmp_path)
