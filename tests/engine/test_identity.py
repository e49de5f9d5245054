"""Which object something is: asked without Python's audit hooks, and not of the object."""

import subprocess
import sys
from pathlib import Path

from drills.instruments import meant
from drills.instruments.identity import identity
from drills.instruments.intact import Intact

ROOT = Path(__file__).resolve().parents[2]

TOLD = """
import sys
from drills.instruments.identity import identity
heard = []
sys.addaudithook(lambda event, _: heard.append(event))
identity(heard)
assert heard == [], heard
"""


class Alike:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return True


def test_no_two_objects_share_it_whatever_they_say():
    one, other = Alike(), Alike()
    assert identity(one) == identity(one) != identity(other)
    assert len({identity(kind) for kind in (Alike, int, [], [1], None)}) == 5


def test_no_audit_hook_is_told():
    subprocess.run([sys.executable, "-c", TOLD], cwd=ROOT, check=True)


def test_another_in_its_place_is_noticed(monkeypatch):
    intact = Intact()
    monkeypatch.setattr(meant, "identity", len)
    assert intact.changed() == "drills.instruments.meant.identity"
