"""The JSON of grades, submissions and statistics against its schema files, read by an independent validator."""

import json
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource
from sample_class import CLASS
from sample_grades import SCREENS

from drills.batch import seed
from drills.batch.engine import Batch, Wishes
from drills.batch.freeze import Frozen
from drills.batch.place import Place
from drills.batch.settings import Settings
from drills.report import json_file, model, submission
from drills.report.console import open_console
from drills.report.points import Points
from drills.report.statistics import Statistics

FOLDER = Path(json_file.__file__).parent / "schema"
SCHEMAS = {path.name.split(".")[0]: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.schema.json"))}
REGISTRY = Registry().with_resources([(one["$id"], Resource.from_contents(one)) for one in SCHEMAS.values()])
DATACLASSES = {
    "lesson": model.LessonResult,
    "exercise": model.ExerciseResult,
    "levelResult": model.LevelResult,
    "test": model.TestResult,
    "failure": model.Failure,
}


def check(name, tree):
    """Raises if the tree, as it is read back from a file, does not fit the schema."""
    schema = jsonschema.Draft202012Validator(SCHEMAS[name], registry=REGISTRY)
    schema.validate(json.loads(json.dumps(tree, allow_nan=False)))


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_one_itself_and_carries_its_number(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    number = {"grade": json_file.SCHEMA, "submission": submission.SCHEMA}.get(name, 1)
    assert SCHEMAS[name]["$id"].endswith(f":{number}")
    assert SCHEMAS[name]["properties"]["schema"] == {"const": number}


@pytest.mark.parametrize("name", SCREENS)
def test_every_kind_of_grade_fits_and_comes_back_the_same(name):
    tree = json_file.as_tree(SCREENS[name])
    check("grade", tree)
    assert json_file.as_tree(json_file.from_tree(json.loads(json.dumps(tree)))) == tree


def test_a_number_that_json_cannot_hold_fits_too():
    grade = model.Grade("x/", "cpu", seconds=float("nan"))
    assert json_file.as_tree(grade)["seconds"] is None
    check("grade", json_file.as_tree(grade))


@pytest.mark.parametrize("one", CLASS, ids=lambda one: one.id)
def test_every_submission_fits_and_comes_back_the_same(one):
    tree = submission.to_tree(one)
    check("submission", tree)
    assert submission.from_tree(json.loads(json.dumps(tree))) == one


@pytest.mark.parametrize("class_", [CLASS, ()], ids=["a class", "an empty class"])
def test_statistics_fit(class_):
    found = Statistics()
    for one in class_:
        found.add(one, Points())
    check("statistics", found.tree(Points()))


def test_what_was_run_fits(tmp_path):
    place = Place(tmp_path / "out")
    place.prepare()
    how = Settings({"l4_merge_states": ("merge_state",)}, "bwrap")
    batch = Batch(tmp_path, place, how, Wishes(shard=(1, 8)), open_console())
    batch._describe(seed.draw(), Frozen(["a"], ["x.py: lies beside"]), "2026-01-31T12:00:00+00:00")
    tree = json.loads((tmp_path / "out" / "batch.json").read_text())
    check("batch", tree)
    assert set(SCHEMAS["batch"]["required"]) == set(tree)
    assert tree["shard"] == [1, 8]
    check("batch", tree | {"counts": {"passed": 1}, "missing": [], "ended": "now"})


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema",), 2),
        (("lessons", 0, "exercises", 0, "state"), "fine"),
        (("lessons", 0, "exercises", 0, "levels", "value", "state"), "ok"),
        (("lessons", 0, "exercises", 0, "levels", "speed"), {"state": "passed", "note": ""}),
        (("lessons", 0, "exercises", 0, "tests", 0, "outcome"), "skipped"),
        (("lessons", 0, "sha256"), "short"),
        (("seconds",), -1),
        (("grader_error",), None),
    ],
)
def test_what_is_wrong_does_not_fit(place, value):
    tree = json_file.as_tree(SCREENS["wrong_value"])
    spot = tree
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        check("grade", tree)


@pytest.mark.parametrize("name", DATACLASSES)
def test_the_schema_has_every_field_and_no_other(name):
    schema = SCHEMAS["grade"]["$defs"][name]
    names = [one.name for one in fields(DATACLASSES[name])]
    assert list(schema["properties"]) == names
    assert sorted(schema["required"]) == sorted(names)


@pytest.mark.parametrize(
    ("name", "holder", "more"),
    [("grade", model.Grade, json_file.COUNTS), ("submission", submission.Submission, ("schema",))],
)
def test_the_whole_has_every_field_and_no_other(name, holder, more):
    names = {one.name for one in fields(holder)} | set(more)
    assert set(SCHEMAS[name]["properties"]) == names == set(SCHEMAS[name]["required"])


def test_the_levels_are_those_of_the_model():
    assert tuple(SCHEMAS["grade"]["$defs"]["level"]["enum"]) == model.LEVELS
