"""A ledger never says less than was spent, whatever happens to the runs and to the disk."""

import errno
import fcntl
import json
import os
import signal
import threading
import time
import warnings
from fractions import Fraction
from hashlib import sha256

import pandas as pd
import pytest
from calling import way
from hypothesis import given, settings
from hypothesis import strategies as st

import smalldb
from queries import Domain
from smalldb.accounting import compose_records
from smalldb.cli import main
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account, OutOfBudget
from smalldb.releasing.record import make_record


def record(epsilon="0.1", neighbours="replace-one", **changes):
    """What counts of a record."""
    privacy = {"epsilon": str(epsilon), "bounded_range": None}
    return {"privacy": privacy, "neighbours": neighbours, "delta": None, "private": True} | changes


def said(path):
    """A ledger's lines by their definition: each after the checksum of the one before and of itself."""
    last, lines = "", []
    for line in path.read_text(encoding="ascii").splitlines():
        digest, text = line.split(" ", 1)
        last = sha256(f"{last} {text}".encode()).hexdigest()
        assert digest == last
        lines.append(json.loads(text))
    assert path.read_bytes().endswith(b"\n")
    return lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.ledger"


def filled(path, times=3, budget=1):
    ledger = Ledger(path, budget)
    for _ in range(times):
        ledger.spend(record())
    return ledger


@pytest.mark.parametrize(("budget", "epsilon", "room"), [(1, "0.1", 10), ("0.3", "0.1", 3), (1, "1/3", 3)])
def test_the_budget_is_spent_to_its_end_and_no_further(path, budget, epsilon, room):
    ledger = Ledger(path, budget)
    for i in range(room):
        assert ledger.read().spent == i * Fraction(epsilon)
        assert ledger.spend(record(epsilon)).spent == (i + 1) * Fraction(epsilon)
    before = path.read_bytes()
    for least in (epsilon, "1e-300"):
        with pytest.raises(OutOfBudget, match=r"^epsilon: .* 0 of the budget of .* is left$"):
            ledger.spend(record(least))
    assert path.read_bytes() == before
    assert said(path) == [
        {"budget": str(budget), "ledger": 1},
        *[{"bounded_range": None, "epsilon": epsilon, "neighbours": "replace-one"}] * room,
    ]
    assert (ledger.read().left, ledger.read().torn) == (0, False)


amounts = st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=50)


@settings(max_examples=40)
@given(amounts.map(lambda x: 3 * x), st.lists(amounts, max_size=12))
def test_accounts_are_sums_and_refuse_what_is_left_over(budget, epsilons):
    account, spent = Account(budget), []
    for epsilon in epsilons:
        if sum(spent) + epsilon <= budget:
            account = account.after(record(epsilon))
            spent.append(epsilon)
        else:
            with pytest.raises(OutOfBudget):
                account.after(record(epsilon))
        assert (account.spent, account.left) == (sum(spent), budget - sum(spent))
    if spent:
        composed = compose_records(account.records, delta=0)
        assert composed.method == "addition"
        assert 0 <= Fraction(composed.epsilon) - sum(spent) < Fraction(1, 10**12)


@pytest.mark.slow
def test_what_records_hold_is_what_is_composed(path):
    ledger, whole = Ledger(path, 30), []
    for mechanism, times in (("census", 40), ("contrasts", 3)):
        planned = smalldb.plan(Domain(["a", "b"]), n=100, epsilon="1/2", rows=3, **way(mechanism))
        whole += [make_record(planned, private=True)] * times
    for one in whole:
        account = ledger.spend(one)
    assert account == ledger.read()
    kept = ("privacy", "neighbours", "delta", "private")
    old = [{key: one[key] for key in kept} for one in whole]  # what a ledger of epsilon alone keeps of them
    for one in old:
        one["privacy"] = {key: one["privacy"][key] for key in ("epsilon", "bounded_range")}
    assert [dict(made) for made in account.records] == old
    for delta in ("1e-6", 0):
        ours, theirs = account.composed(delta), compose_records(old, delta=delta)
        assert (ours.epsilon, ours.method, ours.delta) == (theirs.epsilon, theirs.method, theirs.delta)
        assert compose_records(whole, delta=delta).epsilon <= ours.epsilon
    assert account.composed("1e-6").epsilon < account.spent


def test_a_release_is_entered_by_its_record(path):
    frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})
    made = smalldb.release(frame, epsilon="1/2", rows=2, neighbours="add-remove")
    account = Ledger(path, 1).spend(made.record)
    assert account.spent == Fraction(made.record["privacy"]["epsilon"]) < Fraction(1, 2)
    with pytest.raises(ValueError, match="one neighbouring relation"):
        Ledger(path).spend(record())
    assert Ledger(path).read() == account


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (record(private=False), "seeded release is not private"),
        (record(delta="1e-9"), "delta of the record must be null"),
        (record("0"), "epsilon must be above 0"),
        (record("nan"), "epsilon must be a finite number"),
        (record(neighbours="both"), "neighbours must be"),
        (record(neighbours=None), "neighbours must be"),
        (record(privacy={}), "a key is missing"),
        ({}, "a key is missing"),
        (3, "a key is missing"),
    ],
)
def test_what_is_no_private_release_is_refused(path, wrong, message):
    ledger = Ledger(path, 1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        ledger.spend(wrong)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_a_ledger_is_made_with_a_budget_above_0_and_by_no_misspelt_name(path):
    for budget in (0, -1, "inf", "x"):
        with pytest.raises(ValueError, match="budget must be"):
            Ledger(path, budget)
    with pytest.raises(FileNotFoundError):
        Ledger(path)
    assert not path.exists()


def test_a_budget_stands_for_good(path):
    filled(path)
    assert Ledger(path).read() == Ledger(path, "1.0").read()
    for other in (2, "0.999"):
        with pytest.raises(ValueError, match="is 1, for good"):
            Ledger(path, other)


def test_other_files_folders_and_pipes_are_no_ledgers(path, tmp_path):
    for content in (b"", b"\n", b"a,b\n0,1\n", b"{}\n", b"\xff\xfe", b"}", b"0" * 65 + b"{}\n"):
        path.write_bytes(content)
        for budget in (1, None):
            with pytest.raises(ValueError, match="damaged, or no ledger"):
                Ledger(path, budget)
        assert path.read_bytes() == content
    path.unlink()
    os.mkfifo(path)
    for position in (tmp_path, path):
        for budget in (1, None):
            with pytest.raises((ValueError, OSError), match=r"not a regular file|[Ii]s a directory"):
                Ledger(position, budget)


@pytest.mark.slow
def test_any_changed_byte_is_noticed(path):
    filled(path, 1)
    raw = path.read_bytes()
    for position in range(len(raw)):
        for byte in {10, 125, raw[position] ^ 1, raw[position] ^ 128} - {raw[position]}:
            path.write_bytes(raw[:position] + bytes([byte]) + raw[position + 1 :])
            with pytest.raises(ValueError, match="damaged"):
                Ledger(path)


def test_lines_that_are_missing_moved_or_repeated_are_noticed(path):
    filled(path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    orders = [[0, 2, 3, 4], [0, 1, 3, 4], [0, 2, 1, 3, 4], [0, 1, 2, 3, 4, 4], [1, 2, 3, 4], [0, 0, 1]]
    for order in orders:
        path.write_bytes(b"".join(lines[i] for i in order))
        with pytest.raises(ValueError, match="damaged"):
            Ledger(path)


def sealed(text, last=""):
    """A line of a ledger after one with this checksum."""
    return f"{sha256(f'{last} {text}'.encode()).hexdigest()} {text}\n".encode()


def test_a_ledger_or_a_line_of_another_format_is_refused(path):
    for head in ('{"budget": "3", "ledger": 2}', '{"budget": "3", "ledger": "1"}'):
        path.write_bytes(sealed(head))
        with pytest.raises(ValueError, match="damaged"):
            Ledger(path).read()
    path.write_bytes(sealed('{"budget": "3", "ledger": 1}'))
    assert Ledger(path).spend(record()).budget == 3
    raw = path.read_bytes()
    for text in (
        '{"epsilon": "1"}', '{"bounded_range": null, "epsilon": "x", "neighbours": "replace-one"}', "[]"
    ):  # fmt: skip
        path.write_bytes(raw + sealed(text, raw.splitlines()[-1][:64].decode()))
        with pytest.raises(ValueError, match="damaged"):
            Ledger(path).spend(record())


@pytest.mark.slow
def test_an_unfinished_line_is_told_and_removed(path):
    ledger = filled(path)
    raw = path.read_bytes()
    start = raw.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(raw)):
        path.write_bytes(raw[:end])
        found = ledger.read()
        counted = 3 if end == len(raw) - 1 else 2  # where only the line break is missing, it counts
        assert (len(found.records), found.torn) == (counted, start < end < len(raw) - 1)
        after = ledger.spend(record("0.2"))
        assert after.torn == found.torn
        assert after.spent == Fraction(counted, 10) + Fraction(1, 5)
        assert ledger.read() == Account(after.budget, after.records)
        assert len(said(path)) == counted + 2


@pytest.mark.parametrize("room", [0, 1, 70, 130, 10**6])
def test_a_failing_disk_leaves_the_ledger_as_it_was(path, monkeypatch, room):
    ledger = filled(path)
    before, write, left = path.read_bytes(), os.write, room

    def some(handle, raw):
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "no room")
        done = write(handle, raw[:left])
        left -= done
        return done

    def failing(handle):
        raise OSError(errno.EIO, "no disk")

    with monkeypatch.context() as patched, pytest.raises(OSError, match=r"no room|no disk") as caught:
        patched.setattr(os, "write", some)
        patched.setattr(os, "fsync", failing)
        ledger.spend(record())
    assert (caught.value.filename, left < room or not room) == (str(path), True)
    assert caught.value.errno == (errno.EIO if room > 1000 else errno.ENOSPC)
    assert path.read_bytes() == before
    assert ledger.spend(record()).spent == Fraction(4, 10)


def test_a_ledger_that_is_replaced_under_way_is_refused(path, monkeypatch):
    ledger = filled(path)
    refused, waiting, sleep = [], threading.Event(), time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (waiting.set(), sleep(seconds)))

    def spend():
        try:
            ledger.spend(record())
        except ValueError as error:
            refused.append(str(error))

    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        other = threading.Thread(target=spend)
        other.start()
        assert waiting.wait(60) and other.is_alive()
        fresh = path.with_name("fresh")
        fresh.write_bytes(path.read_bytes())
        fresh.replace(path)
    other.join()
    assert len(refused) == 1
    assert "was replaced while it was opened" in refused[0]
    assert len(ledger.read().records) == 3


def test_a_ledger_that_another_file_replaces_as_it_is_opened_is_not_used(path, monkeypatch):
    """Neither of the two files, nor to read: each says less than both together."""
    ledger, opened = filled(path), os.open
    before, old = path.read_bytes(), path.with_name("old")
    old.hardlink_to(path)

    def late(name, *flags, **more):
        handle = opened(name, *flags, **more)
        path.with_name("copy").write_bytes(before)
        path.with_name("copy").replace(path)
        return handle

    for use in (lambda: Ledger(path), ledger.read, lambda: ledger.spend(record())):
        with monkeypatch.context() as patched, pytest.raises(ValueError, match="was replaced"):
            patched.setattr(os, "open", late)
            use()
    assert path.read_bytes() == old.read_bytes() == before


def test_who_reads_shares_the_lock_and_who_writes_waits_for_all(path, monkeypatch):
    class Waiting(Exception):
        pass

    def waiting(_):
        raise Waiting

    ledger = filled(path)
    monkeypatch.setattr(time, "sleep", waiting)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert len(ledger.read().records) == 3
        with pytest.raises(Waiting):
            ledger.spend(record())
    assert len(ledger.spend(record()).records) == 4


def test_of_many_who_make_a_ledger_one_sets_the_budget(path):
    for _ in range(20):
        path.unlink(missing_ok=True)
        made, start = [], threading.Barrier(6)

        def make(budget, made=made, start=start):
            start.wait()
            try:
                made.append(Ledger(path, budget).read().budget)
            except ValueError as error:
                assert "for good" in str(error)

        threads = [threading.Thread(target=make, args=(budget,)) for budget in (1, 1, 1, 2, 2, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 3
        assert set(made) == {Ledger(path).read().budget}
        assert os.listdir(path.parent) == [path.name]


def in_a_child(work):
    """Let a child process do something; return its number."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of a fork beside a thread
        child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


@pytest.mark.slow
def test_processes_share_what_is_left(path):
    reader, writer = os.pipe()

    def spend():
        Ledger(path, 1).spend(record())
        os.write(writer, b"x")  # the release

    children = [in_a_child(spend) for _ in range(40)]
    for child in children:
        os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as released:
        assert len(released.read()) == 10
    assert len(said(path)) == 11


@pytest.mark.slow
def test_a_run_killed_within_its_line_has_spent_it_or_released_nothing(path):
    ledger, write, epsilon, torn = Ledger(path, 1000), os.write, Fraction(1, 10), 0
    for cut in range(0, 150, 3):
        before = ledger.read()

        def spend(cut=cut):
            def some(handle, raw):
                write(handle, raw[:cut])
                os.kill(os.getpid(), signal.SIGKILL)

            os.write = some
            ledger.spend(record())

        assert os.WIFSIGNALED(os.waitpid(in_a_child(spend), 0)[1])
        found = ledger.read()
        assert found.spent - before.spent in (0, epsilon), cut
        torn += found.torn
        after = ledger.spend(record())
        assert after.spent == found.spent + epsilon and not ledger.read().torn
    length = len(path.read_bytes().splitlines(keepends=True)[-1])
    # neither nothing, nor all, nor all but the line break
    assert torn == sum(0 < cut < length - 1 for cut in range(0, 150, 3))
    assert length < 150


def test_a_file_system_without_locks_names_the_ledger(path, monkeypatch, capsys):
    Ledger(path, 1)

    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", none)
    with pytest.raises(OSError) as raised:
        Ledger(path).read()
    assert raised.value.filename == str(path)
    assert main(["ledger", str(path)]) == 3
    assert capsys.readouterr().err == f"smalldb: {path}: no locks available\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside a thread
def test_a_process_forked_while_the_lock_was_held_does_not_keep_it(path, monkeypatch):
    ledger, plain = Ledger(path, 1), os.fsync
    locked, go, (reader, writer) = threading.Event(), threading.Event(), os.pipe()

    def slow(handle):
        locked.set()
        go.wait()
        plain(handle)

    def waiting():
        os.close(writer)
        os.read(reader, 1)  # lives until its parent is done

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", slow)
        spending = threading.Thread(target=ledger.spend, args=[record()])
        spending.start()
        locked.wait()
        child = in_a_child(waiting)
        go.set()
        spending.join()
    assert ledger.spend(record()).spent == Fraction(1, 5)
    os.close(writer)
    os.close(reader)
    os.waitpid(child, 0)


def test_a_ledger_whose_maker_was_killed_is_in_its_folder_before_anything_is_released(path, monkeypatch):
    plain, synced = os.fsync, []
    Ledger(path, 1)

    def noted(handle):
        synced.append(os.fstat(handle).st_ino)
        plain(handle)

    monkeypatch.setattr(os, "fsync", noted)
    Ledger(path).spend(record())
    assert synced == [path.stat().st_ino, path.parent.stat().st_ino]


def test_a_power_cut_at_the_first_draw_finds_the_payment_on_the_disk(path, monkeypatch):
    """A disk keeps of a file what it held when it was synced, and its name if its folder was synced since."""
    Ledger(path, 1)  # by a process that was killed before it had synced anything
    (path.parent / "elsewhere").mkdir()
    plain, disk = os.fsync, {}

    def synced(handle):
        inode = os.fstat(handle).st_ino
        disk[inode] = path.read_bytes() if inode == path.stat().st_ino else os.listdir(path.parent)
        plain(handle)

    class Cut(Exception):
        pass

    class Bits:
        private = True

        def bits(self, _):
            raise Cut(path.name in disk.get(path.parent.stat().st_ino, ()), disk.get(path.stat().st_ino))

    monkeypatch.setattr(os, "fsync", synced)
    given = {"epsilon": "1/2", "rows": 2, "checkpoint": path.parent / "elsewhere" / "kept", "rng": Bits()}
    with pytest.raises(Cut) as cut:
        smalldb.release(pd.DataFrame({"a": [0, 1]}), ledger=Ledger(path), **given)
    assert cut.value.args == (True, path.read_bytes()) and len(said(path)) == 2


def test_sums_that_no_text_can_tell_are_refused_before_they_are_spent(workdir, capsys):
    (workdir / "data.csv").write_text("a,b\n0,0\n0,1\n1,1\n")
    ledger = Ledger("l", 1)
    ledger.spend(record(Fraction(1, 3**6000)))
    before = (workdir / "l").read_bytes()
    with pytest.raises(ValueError, match=r"^epsilon, added up with all before it, must be .* bits"):
        ledger.spend(record(Fraction(1, 7**3000)))
    epsilon = f"1/{7**3000}"
    command = ["generate", "data.csv", "--epsilon", epsilon, "--rows", "2", "--ledger", "l", "-o", "out.csv"]
    assert main(command) == 2
    assert capsys.readouterr().err.startswith("smalldb: epsilon, added up")
    assert (workdir / "l").read_bytes() == before
    assert main(["ledger", "l"]) == 0
    assert f"1/{3**6000}" in capsys.readouterr().out
