"""What will run and what it promises, from public numbers alone, before any data is read."""

from smalldb.mechanisms import MAX_N, Neighbours, relation_of, workload_of
from smalldb.planning.choosing import Settings, plan
from smalldb.planning.plans import Plan

__all__ = ["MAX_N", "Neighbours", "Plan", "Settings", "plan", "relation_of", "workload_of"]
