"""pandas, imported when it is first used: commands on CSV files of yes/no columns do without."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Late:
        """Stands for pandas, whose import takes as long as such a command."""

        def __getattr__(self, name: str) -> object:
            import pandas

            return getattr(pandas, name)

    pd = _Late()

__all__ = ["pd"]
