"""k-trees: an order of the attributes in which the parents of each lie together in an earlier clique."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

BROAD = 3  # parents


@dataclass(frozen=True)
class Tree:
    """A k-tree over the attributes, or a forest of them."""

    # A node is a position in the order. Its clique is itself and its parents; any set of attributes
    # within some clique is within the clique of its own last node.

    order: tuple[int, ...]  # the attribute of each node
    # earlier nodes, ascending; all within the clique of one earlier node
    parents: tuple[tuple[int, ...], ...]
    # of each node, the first earlier one whose clique holds its parents; None: it has none
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
        children: list[list[int]] = [[] for _ in self.order]
        for node, holder in enumerate(self.holders):
            if holder is not None:
                children[holder].append(node)
        return tuple(map(tuple, children))

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The nodes without parents."""
        return tuple(node for node, holder in enumerate(self.holders) if holder is None)

    @cached_property
    def broad(self) -> tuple[int, ...]:
        """The nodes without children that have `BROAD` parents or more: a state of theirs has many ways."""
        return tuple(
            node
            for node, children in enumerate(self.children)
            if not children and len(self.parents[node]) >= BROAD
        )

    @cached_property
    def hubs(self) -> tuple[int, ...]:
        """Of a star the first nodes, which are the parents of all others: `BROAD` or more; else none."""
        count = len(self.parents[-1])
        starred = all(parents == tuple(range(min(node, count))) for node, parents in enumerate(self.parents))
        return tuple(range(count)) if starred and count >= BROAD else ()

    # Proof: docs/proofs/rejection.md, lemma 10.
    @cached_property
    def narrow(self) -> "Tree":
        """The tree whose broad leaves keep the first of their parents alone, one fewer than `BROAD`."""
        parents = (p[: BROAD - 1] if node in self.broad else p for node, p in enumerate(self.parents))
        return Tree(self.order, tuple(parents))

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each node's parents, in order, and then its own."""
        return tuple(
            (*(self.order[p] for p in parents), attribute)
            for attribute, parents in zip(self.order, self.parents, strict=True)
        )


def star(hubs: Sequence[int], attributes: int) -> Tree:
    """Return the tree in which the hubs are the parents of each attribute but themselves."""
    rest = [a for a in range(attributes) if a not in hubs]
    inner = tuple(tuple(range(position)) for position in range(len(hubs)))
    return Tree((*hubs, *rest), (*inner, *[tuple(range(len(hubs)))] * len(rest)))


def scattered(attributes: int) -> Tree:
    """Return the tree without edges."""
    return Tree(tuple(range(attributes)), ((),) * attributes)
