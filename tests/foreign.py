"""
Run Python as on a system that has no fork, no file locks and few signals, as Windows is.

    python tests/foreign.py -m smalldb ...

Folders cannot be opened, and open files cannot be moved or removed. Paths and consoles are not emulated.
"""

import multiprocessing
import os
import runpy
import shutil
import signal
import sys
from contextlib import suppress

MODULES = ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "syslog")
OF_OS = "fork forkpty posix_fallocate posix_spawn getuid geteuid getgid chown fchmod register_at_fork".split()
OF_OS += "mkfifo killpg getpgrp O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK".split()
SIGNALS = ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGALRM", "SIGCHLD", "SIGPIPE", "SIGTSTP", "SIGUSR1", "SIGWINCH")
OF_SIGNAL = ("alarm", "setitimer", "pthread_sigmask", "sigwait", "pthread_kill", "siginterrupt")


def closed(change):
    """Return a change of a file that is refused while this process has the file open."""

    def refusing(*paths, **named):
        given = [os.path.realpath(path) for path in paths]
        for handle in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # that of the list itself
                if os.readlink(f"/proc/self/fd/{handle}") in given:
                    raise PermissionError(13, "another program has the file open", given[0])
        return change(*paths, **named)

    return refusing


def leave():
    """Take away what other systems have not; libraries that are imported later see it so."""
    multiprocessing.set_start_method("spawn")
    for name in MODULES:
        sys.modules[name] = None
    for module, names in ((os, OF_OS), (signal, (*SIGNALS, *OF_SIGNAL))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    shutil._use_fd_functions = False
    opened, rename = os.open, os.rename

    def of_file(path, flags, *given, **named):
        if os.path.isdir(path):
            raise PermissionError(13, "is a folder", path)
        return opened(path, flags, *given, **named)

    def to_new(source, code, **named):
        if os.path.exists(code):
            raise FileExistsError(17, "is there", code)
        rename(source, code, **named)

    os.open, os.rename = of_file, closed(to_new)
    os.replace, os.unlink, os.remove = map(closed, (os.replace, os.unlink, os.remove))


if __name__ == "__main__":
    leave()
    run, sys.argv = (
        (runpy.run_module, sys.argv[2:]) if sys.argv[1] == "-m" else (runpy.run_path, sys.argv[1:])
    )
    run(sys.argv[0], run_name="__main__")
