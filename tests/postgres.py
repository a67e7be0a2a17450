"""A server of PostgreSQL, by the binaries of the system: started and stopped by whoever asks."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "pass:/?#@word%"


def binaries():
    """The folder of the newest server's binaries; None: there is none, or nobody who may run it."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not found and (linked := shutil.which("initdb")):
        found = [Path(linked).resolve()]
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return found[-1].parent if found and os.getuid() else None
    return found[-1].parent if found else None


@contextmanager
def server():
    """A server of an empty database at 127.0.0.1: its port. The user `ann` has the `PASSWORD`."""
    folder, own = Path(tempfile.mkdtemp(prefix="smalldb-pg-")), os.getuid()
    as_user = {} if own else {"user": "postgres", "group": "postgres", "extra_groups": []}
    if not own:  # the server refuses to run as root
        shutil.chown(folder, "postgres", "postgres")

    def run(command, *arguments):
        subprocess.run(
            [binaries() / command, *map(str, arguments)],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            **as_user,
        )

    secret = folder / "secret"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o644)

    def start(tries=5):
        """The port of the server that was started; others may take one that was free a moment ago."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ways = f"-p {port} -h 127.0.0.1 -k {folder} -F"
        try:
            run("pg_ctl", "-D", folder / "data", "-w", "-t", "300", "-l", folder / "log", "-o", ways, "start")
        except subprocess.CalledProcessError:
            if tries == 1:
                raise
            return start(tries - 1)
        return port

    try:
        run("initdb", "-D", folder / "data", "-U", "ann", "-A", "scram-sha-256", f"--pwfile={secret}", "-N")
        port = start()
        try:
            yield port
        finally:
            run("pg_ctl", "-D", folder / "data", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
