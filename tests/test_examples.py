"""The examples are what the published tables say, and run; notebooks print what is stored in them."""

import json
import runpy

import pandas as pd
import pytest
from matplotlib import pyplot

pytestmark = pytest.mark.slow


def test_tables_are_reproduced_by_their_maker(examples, tmp_path):
    maker = tmp_path / "make_tables.py"
    maker.write_text((examples / "make_tables.py").read_text(encoding="utf-8"), encoding="utf-8")
    runpy.run_path(str(maker), run_name="__main__")
    for name in ("autoworkers.csv", "titanic.csv"):
        assert (tmp_path / name).read_bytes() == (examples / name).read_bytes()


def test_margins_are_the_published_ones(examples):
    workers = pd.read_csv(examples / "autoworkers.csv")
    assert workers.shape == (1841, 6)
    assert workers["family_history"].sum() == 260
    titanic = pd.read_csv(examples / "titanic.csv")
    assert titanic.shape == (2201, 6)
    assert titanic[["first_class", "second_class", "third_class"]].sum().tolist() == [325, 285, 706]
    assert (titanic["survived"].sum(), titanic["child"].sum(), titanic["female"].sum()) == (711, 109, 470)


def test_quickstart_runs(examples, capsys):
    runpy.run_path(str(examples / "quickstart.py"), run_name="__main__")
    told = capsys.readouterr().out
    record, _ = json.JSONDecoder().raw_decode(told[told.index("{") :])
    assert record["rows"] == 6
    assert "confidential: the largest error" in told


@pytest.mark.slow
@pytest.mark.parametrize("notebook", ["analyst", "small_database", "steward"])
def test_the_cells_print_what_they_printed(notebook, examples, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf()))
    monkeypatch.chdir(examples)
    cells = json.loads((examples / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    names = {}
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        exec("".join(cell["source"]), names)
        stored = [output for output in cell["outputs"] if output["output_type"] == "stream"]
        assert capsys.readouterr().out == "".join(line for output in stored for line in output["text"])
        pictures = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        assert len(pictures) == len(shown)
        while shown:
            pyplot.close(shown.pop())
