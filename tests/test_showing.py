"""What values show of themselves in a notebook: short, whole, and nothing confidential."""

import re

import numpy as np
import pandas as pd
import pytest
from test_page import Outline

import smalldb
from queries import Domain, Marginals
from smalldb.reporting.notebook import Picture
from smalldb.reporting.page import page
from smalldb.reporting.words import SEEDED, tell

FRAME = pd.DataFrame(np.random.default_rng(2).integers(0, 2, (77, 3)), columns=["<a>", "b", "c"])
PNG = b"\x89PNG\r\n"


def shown(value):
    text = value._repr_html_()
    assert len(text) < 5000
    return [found.strip() for found in Outline(text).texts if found.strip()]


def values():
    made = smalldb.release(FRAME, epsilon=1, rows=3)
    return {
        "Release": made,
        "Plan": made.plan,
        "Census": smalldb.census(FRAME, Marginals(2), rows=2),
        "Audit": smalldb.audit(Domain(["a"]), "conjunctions:1", rows=1, epsilon=1, n=2),
        "Evaluation": smalldb.evaluate(FRAME, made.data),
    }


def test_each_shows_a_table_of_its_name():
    for name, value in values().items():
        assert shown(value)[0] == name


def test_the_table_of_a_release_is_what_the_command_says_and_its_first_rows():
    made = smalldb.release(FRAME, epsilon="1/2", rows=9, rng=1, rows_per_person=2)
    texts = shown(made)
    facts = [("warning", SEEDED), *tell(made.record, made.plan)]
    assert all(label in ("", *texts) and said in texts for label, said in facts)
    assert "<a>" in texts
    assert len(re.findall("<tr>", made._repr_html_())) == len(facts) + 5
    private = smalldb.release(FRAME, epsilon=20, rows=2, neighbours="add-remove")
    assert any(said.startswith("epsilon is above 10") for said in shown(private))
    assert SEEDED not in shown(private)


def test_tables_of_confidential_values_do_not_depend_on_the_data():
    other = FRAME.assign(b=1 - FRAME["b"], c=0)[:50]
    made = pd.DataFrame([[0, 1, 0]], columns=FRAME.columns)
    found = [
        (shown(smalldb.evaluate(table, made)), shown(smalldb.census(table, Marginals(2), rows=2)))
        for table in (FRAME, other)
    ]
    assert found[0] == found[1]


def test_what_is_confidential_is_in_no_repr():
    settings = {"rows": 2, "epsilon": 1, "rng": 4, "mechanism": "census"}
    for name, value in values().items():
        said = repr(value) + value._repr_html_()
        if name in ("Census", "Evaluation"):
            assert "onfidential" in said
            assert not re.search(r"0\.\d", said.replace("(epsilon=1)", ""))
    real = smalldb.release(FRAME, "conjunctions:1", **settings)
    copy = smalldb.Release(real.data, real.record, real.plan, real.codes)
    assert copy._repr_html_() == real._repr_html_()


def test_a_release_reports_itself():
    made = smalldb.release(FRAME, epsilon=1, rows=3)
    assert made.report() == page(made)
    assert "<h1>Flags</h1>" in made.report(title="Flags", publisher="us")
    with pytest.raises(TypeError, match="titel"):
        made.report(titel="Flags")


@pytest.mark.slow
def test_pictures_are_png_and_say_whether_they_are_confidential(tmp_path):
    found = values()
    for name, confidential in (("Release", False), ("Census", True), ("Evaluation", True)):
        picture = found[name].plot()
        assert picture._repr_png_().startswith(PNG)
        assert ("confidential" in repr(picture)) is confidential is picture.confidential
    picture = found["Census"].plot(epsilon=["1/2", 1])
    picture.save(str(tmp_path / "law.png"))
    assert (tmp_path / "law.png").read_bytes() == picture.png
    with pytest.raises(ValueError, match=r"must end in .png"):
        Picture(PNG, False).save("law.svg")
