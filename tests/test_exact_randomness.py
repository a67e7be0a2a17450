import json
import os
import random
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import smalldb
from smalldb.cli import main
from smalldb.exact.bits import BitSource, SeededBits, SystemBits, bit_source
from smalldb.selection import randomised_response

# what `openssl dgst -shake256` makes of the bytes of the seed and eight zero bytes, first eight bytes
STREAMS = {0: 0xD5167A096C7DB7C8, -1: 0x5526A740DCC4EA5D, 12345: 0xDCB395E243F91C9C}


def test_seeded_streams_are_pinned():
    assert {seed: SeededBits(seed).bits(64) for seed in STREAMS} == STREAMS
    source = SeededBits(0)
    source.bits(1024)
    assert source.bits(64) == 0x76E6A8FCCD03F1FB  # of the second block


def test_seeds_have_streams_of_their_own():
    seeds = [*range(-300, 300), 2**64, -(2**64), 10**5000]
    assert len({SeededBits(seed).bits(64) for seed in seeds}) == len(seeds)


def test_seeded_stream_does_not_depend_on_chunks():
    whole = f"{SeededBits(7).bits(5000):05000b}"
    sizes, source, text = random.Random(1), SeededBits(7), ""
    while len(text) < 3000:
        size = sizes.choice([0, 1, 2, 31, 64, 700, 1024])
        text += f"{source.bits(size):0{size}b}" if size else ""
        assert source.bits(0) == 0
    assert whole.startswith(text)


def test_system_bits_vary_and_fit():
    source = SystemBits()
    assert source.bits(256) != source.bits(256)
    assert source.bits(0) == 0
    for count in range(1, 20):
        drawn = [source.bits(count) for _ in range(60)]
        assert all(0 <= value < 1 << count for value in drawn)
        assert len({value >> (count - 1) for value in drawn}) == len({value & 1 for value in drawn}) == 2


FRAME = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})
RELEASES = [
    {"mechanism": "census"},
    {"mechanism": "census", "candidates": "tuples"},
    {"mechanism": "rejection"},
    {"mechanism": "rejection", "queries": "marginals:1"},
    {"mechanism": "rejection", "candidates": "multisets"},
    {"mechanism": "marginals", "strategy": "contrasts"},
]
DRAWS = [partial(smalldb.release, FRAME, epsilon=1, rows=3, **given) for given in RELEASES]
for method in ("exponential", "permute-and-flip", "noisy-max"):
    DRAWS.append(partial(smalldb.select, [0, 1, 2], epsilon=1, sensitivity=1, method=method))


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: " ".join(map(str, draw.keywords.values())))
def test_entropy_that_fails_at_any_call_ends_every_mechanism(monkeypatch, draw):
    draw()  # imports what it needs: multiprocessing, under tqdm, asks for entropy of its own then
    urandom = os.urandom
    for good in (0, 1, 2, 5, 10):
        calls, failed = 0, False

        def some(count, good=good):
            nonlocal calls, failed
            calls += 1
            if calls > good:
                failed = True
                raise OSError("no entropy")
            return urandom(count)

        monkeypatch.setattr(os, "urandom", some)
        try:
            draw()
        except OSError as error:
            assert str(error) == "no entropy"
            assert calls == good + 1
        else:
            assert not failed
            assert good


def test_failing_entropy_on_the_command_line(tmp_path, monkeypatch, capsys):
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)

    def broken(count):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "urandom", broken)
    command = "generate data.csv --epsilon 1 --rows 2 -o out.csv --even-if-empty"
    assert main(command.split()) == 3
    assert capsys.readouterr() == ("", "smalldb: output: input/output error\n")
    assert os.listdir(tmp_path) == ["data.csv"]


FORKS = """
import json, os, sys
import numpy as np
from fractions import Fraction
from queries import Conjunctions, Domain
from smalldb.noise.distributions import KNorm
from smalldb.exact.integers import uniform_below
from smalldb.exact.bits import SeededBits, SystemBits
from smalldb.rejection.sampler import tuple_sampler

system, seeded = SystemBits(), SeededBits(1)
workload = Conjunctions(2).workload(Domain([f"x{i}" for i in range(6)]))
sampler = tuple_sampler(workload, np.zeros(workload.size, dtype=np.int64), 10, 16, Fraction(1, 1000))

def draws():
    return {
        "system": [system.bits(64) for _ in range(50)],
        "uniform": [uniform_below(10**20 + 39, system) for _ in range(5)],
        "noise": [KNorm((2,) * 10, Fraction(1, 10), True).draw(20, system).tolist() for _ in range(2)],
        "rows": [sampler.draw(system)[0].tolist() for _ in range(2)],
        "seeded": [seeded.bits(64)],
    }

draws()  # what was drawn before the fork must not be drawn on
told = []
for _ in range(3):
    reader, writer = os.pipe()
    if not os.fork():
        with os.fdopen(writer, "w") as file:
            json.dump(draws(), file)
        os._exit(0)
    os.close(writer)
    told.append(reader)
print(json.dumps([draws(), *(json.load(os.fdopen(reader)) for reader in told)]))
"""


@pytest.mark.slow
def test_parent_and_child_never_share_bits():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    processes = json.loads(done.stdout)
    assert len(processes) == 4
    drawn = {name: [str(x) for process in processes for x in process[name]] for name in processes[0]}
    for name in ("system", "uniform", "noise", "rows"):
        assert len(set(drawn[name])) == len(drawn[name]), name
    assert len(set(drawn["seeded"])) == 1  # a seed is a seed, and what would be seen of a buffer


@pytest.mark.parametrize("source", [SystemBits(), SeededBits(1)])
def test_counts_below_zero_are_refused(source):
    with pytest.raises(ValueError, match="count"):
        source.bits(-1)


def test_bit_source():
    own = SeededBits(0)
    assert bit_source(own) is own
    assert isinstance(bit_source(None), SystemBits)
    assert bit_source(12345).bits(64) == STREAMS[12345]
    assert [bit_source(None).private, bit_source(1).private, own.private] == [True, False, False]
    assert all(isinstance(source, BitSource) for source in (SystemBits(), SeededBits(1), own))


OTHERS = [np.random.default_rng(1), np.random.RandomState(1), random.Random(1), random, SystemBits]


@pytest.mark.parametrize("rng", [True, 1.0, "1", *OTHERS])
def test_other_generators_are_refused(rng):
    with pytest.raises(TypeError, match=r"rng must be None .* refused") as caught:
        bit_source(rng)
    assert "\n" not in str(caught.value)


def test_what_other_sources_draw_is_checked():
    class Own:
        def __init__(self, drawn, private=True):
            self.drawn, self.private = drawn, private

        def bits(self, count):
            return self.drawn

    assert bit_source(Own(7)).bits(3) == 7
    for drawn in (8, -1):
        with pytest.raises(ValueError, match="more bits than it was asked for"):
            bit_source(Own(drawn)).bits(3)
    with pytest.raises(TypeError, match="Python ints"):
        bit_source(Own(True)).bits(3)
    assert [said for said in (True, False, "yes", 2) if bit_source(Own(0, said)).private] == [True]


def test_a_bit_too_many_is_refused_where_it_is_drawn():
    class OneMore:
        private = True

        def bits(self, count):
            return 1 << count

    with pytest.raises(ValueError, match="more bits than it was asked for"):
        randomised_response([True] * 8, epsilon=1, rng=OneMore())
