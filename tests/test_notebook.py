"""The notebooks run, and print what is stored in them."""

import json

import pytest
from matplotlib import pyplot


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
