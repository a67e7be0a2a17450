"""A bar on stderr that shows how far long work is."""

from typing import Any, Self


class NoBar:
    """A bar that nobody sees: `tqdm` makes locks even for such, which takes longer than a small table."""

    total: float | None = None
    n = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, done: float = 1) -> None:
        """Show nothing."""

    def refresh(self) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Show nothing."""


def progress_bar(shown: bool, **options: Any) -> Any:
    """Return a bar of `tqdm`, made with its options; `tqdm` is imported only for one that is shown."""
    if not shown:
        return NoBar()
    from tqdm import tqdm

    return tqdm(**options)
