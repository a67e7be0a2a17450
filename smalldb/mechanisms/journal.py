"""What a release has drawn so far, kept in a folder: a killed release goes on from there."""

from collections.abc import Callable
from typing import Any, TypeVar, final

from smalldb.exact.bits import BitSource, SeededBits
from smalldb.files.checkpoints import Checkpoint

R = TypeVar("R")

LOST = "it cannot be done again, for it was drawn: name a new folder, and pay for a new release"


@final
class CountedBits:
    """A source that counts the bits it hands out."""

    def __init__(self, source: BitSource) -> None:
        self._source, self.drawn = source, 0

    @property
    def private(self) -> bool:
        """As the source says."""
        return self._source.private

    def bits(self, count: int) -> int:
        """Draw from the source."""
        self.drawn += count
        return self._source.bits(count)


@final
class Journal:
    """The steps of a release in their order: each is drawn once, saved, and read ever after.

    A step is saved before the next one begins, and before anybody is shown it. It holds what was drawn, and
    no coins: of a source that is not private, also how many bits a step took, so that the same seed goes on
    where it was. The checkpoint is opened, and has no part of another release; None: nothing is kept.
    """

    def __init__(self, source: BitSource, checkpoint: Checkpoint[Any] | None = None) -> None:
        self._checkpoint, self._position = checkpoint, 0
        self._known = 0 if checkpoint is None else len(saved := checkpoint.saved())
        if self._known and saved[-1] != self._known - 1:
            raise ValueError(f"checkpoint: a part is missing: {LOST}")
        self.source = CountedBits(source)

    @property
    def begun(self) -> bool:
        """Whether the next step was drawn before."""
        return self._position < self._known

    # Proof: docs/proofs/rounds.md, lemma 11.
    def step(
        self,
        draw: Callable[[BitSource], R],
        pack: Callable[[R], Any] = lambda released: released,
        unpack: Callable[[Any], R] = lambda packed: packed,
    ) -> R:
        """Return what a step released: read, or drawn now and saved as JSON that `pack` makes, exactly."""
        position, self._position = self._position, self._position + 1
        if self._checkpoint is None:
            return draw(self.source)
        if position < self._known:
            taken, packed = self._checkpoint.load(position)
            if not self.source.private:
                self.source.bits(taken)
            return unpack(packed)
        before = self.source.drawn
        released = draw(self.source)
        taken = 0 if self.source.private else self.source.drawn - before
        self._checkpoint.save(position, [taken, pack(released)])
        return released

    def postprocessing_bits(self) -> BitSource:
        """Return bits for post-processing: the same ones when the release goes on."""
        if self._checkpoint is None or not self.source.private:
            return self.source
        return SeededBits(self.step(lambda coins: coins.bits(256)))
