"""
Run Python as on a system that has no fork, no file locks and few signals, as Windows is.

    python tests/foreign.py -m smalldb ...

Paths, consoles, and files that cannot be replaced while they are open are not emulated.
"""

import multiprocessing
import os
import runpy
import signal
import sys

MODULES = ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "syslog")
OF_OS = (
    "fork",
    "forkpty",
    "posix_fallocate",
    "posix_spawn",
    "getuid",
    "geteuid",
    "getgid",
    "chown",
    "fchmod",
)
OF_OS += ("register_at_fork", "mkfifo", "killpg", "getpgrp", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
SIGNALS = ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGALRM", "SIGCHLD", "SIGPIPE", "SIGTSTP", "SIGUSR1", "SIGWINCH")
OF_SIGNAL = ("alarm", "setitimer", "pthread_sigmask", "sigwait", "pthread_kill", "siginterrupt")


def leave():
    """Take away what other systems have not; libraries that are imported later see it so."""
    multiprocessing.set_start_method("spawn")
    for name in MODULES:
        sys.modules[name] = None
    for module, names in ((os, OF_OS), (signal, (*SIGNALS, *OF_SIGNAL))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


if __name__ == "__main__":
    leave()
    run, sys.argv = (
        (runpy.run_module, sys.argv[2:]) if sys.argv[1] == "-m" else (runpy.run_path, sys.argv[1:])
    )
    run(sys.argv[0], run_name="__main__")
