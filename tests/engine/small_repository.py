"""A repository of two small lessons, for tests of what finds, lists and resets lessons. Needs no torch."""

from pathlib import Path

KERNEL = '''\
@triton.jit
def {name}_kernel(
    x_ptr,  # [N]
):
    # BEGIN SOLUTION
    return
    # END SOLUTION


def {name}(x):  # [N] -> [N]
    """What {name} does."""
    # BEGIN SOLUTION
    return x
    # END SOLUTION
'''

HEAD = '"""{title}."""\n\nimport torch\nimport triton\n\n\n'
LESSONS = {
    "l1_first_steps": ("First steps", ("double", "merge_pair")),
    "l4_merge_states": ("Merging", ("merge_state", "merge_state_in_place", "merge_states")),
}


def solution(stem: str) -> str:
    """The text of a lesson's solution."""
    title, names = LESSONS[stem]
    return HEAD.format(title=title) + "\n\n".join(KERNEL.format(name=name) for name in names)


def build(root: Path) -> Path:
    """Writes the repository under `root`, without mine/, and returns `root`."""
    for folder in ("content", "solutions", "tests", "drills/lessons", "mine"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for stem, (title, _) in LESSONS.items():
        (root / "content" / f"{stem}.md").write_text(f"# {title}\n")
        (root / "solutions" / f"{stem}.py").write_text(solution(stem))
        (root / "tests" / f"test_{stem}.py").write_text("")
        (root / "drills" / "lessons" / f"{stem}.py").write_text(f'LESSON = Lesson("{stem}", "{title}", (), ())\n')
    return root
