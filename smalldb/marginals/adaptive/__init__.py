"""Tables that are selected one after another, by what was released before."""
