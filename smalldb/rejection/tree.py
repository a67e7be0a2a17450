"""k-trees: an order of the attributes in which the parents of each lie together in an earlier clique."""

from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Tree:
    """A k-tree over the attributes, or a forest of them.

    A node is a place in the order. Its clique is itself and its parents; any set of attributes within some
    clique is within the clique of its own last node.

    Attributes
    ----------
    order
        The attribute of each node.
    parents
        Earlier nodes, ascending; all within the clique of one earlier node.
    """

    order: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    holders: tuple[int | None, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if len(set(self.order)) < len(self.order):
            raise ValueError("an attribute stands at one node only")
        object.__setattr__(self, "holders", tuple(self._holder(i) for i in range(len(self.order))))

    def _holder(self, node: int) -> int | None:
        """Return the first earlier node whose clique holds the parents; None: there are no parents."""
        wanted = set(self.parents[node])
        if not wanted:
            return None
        for earlier in range(max(wanted), node):
            if wanted <= {earlier, *self.parents[earlier]}:
                return earlier
        raise ValueError("the parents of a node must lie in an earlier clique")

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The nodes whose states are read off each node's clique."""
        found: list[list[int]] = [[] for _ in self.order]
        for node, holder in enumerate(self.holders):
            if holder is not None:
                found[holder].append(node)
        return tuple(map(tuple, found))

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The nodes without parents."""
        return tuple(node for node, holder in enumerate(self.holders) if holder is None)

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each node's parents, in order, and then its own."""
        return tuple(
            (*(self.order[p] for p in parents), attribute)
            for attribute, parents in zip(self.order, self.parents, strict=True)
        )


def scattered(attributes: int) -> Tree:
    """Return the tree without edges."""
    return Tree(tuple(range(attributes)), ((),) * attributes)
