"""What will run and what it promises, from public numbers alone, before any data is read."""

from smalldb.planning.choosing import plan
from smalldb.planning.plans import Plan
from smalldb.planning.reading import MAX_N, Neighbours, relation_of, workload_of

__all__ = ["MAX_N", "Neighbours", "Plan", "plan", "relation_of", "workload_of"]
