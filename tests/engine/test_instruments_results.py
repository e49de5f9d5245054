"""What is seen of results whose memory is used again by a later call."""

import torch

from drills.instruments.results import HELD, Kept


def test_a_buffer_that_is_handed_out_again_is_seen():
    kept, buffer = Kept(), torch.zeros(4)
    assert kept.findings((torch.zeros(4), buffer)) == []
    (finding,) = kept.findings((torch.zeros(4), buffer))
    assert finding.kind == "shares_memory" and finding.got.startswith("result 1 is memory of an earlier call's result")


def test_a_view_of_an_earlier_result_is_seen():
    kept, buffer = Kept(), torch.zeros(4)
    assert kept.findings(buffer[:2]) == []
    assert [one.kind for one in kept.findings(buffer[2:])] == ["shares_memory"]


def test_fresh_results_are_never_taken_for_earlier_ones():
    """Held results keep their memory: an allocator that reuses what was freed is no mistake."""
    kept = Kept()
    assert [kept.findings(torch.full((16,), float(i))) for i in range(50)] == [[]] * 50


def test_nothing_empty_and_nothing_large_is_held():
    kept, empty, large = Kept(), torch.zeros(0), torch.zeros(HELD // 4 + 1)
    for _ in range(2):
        assert kept.findings((empty, large)) == []
    assert kept.findings(None) == []
