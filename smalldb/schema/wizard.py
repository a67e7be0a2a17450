"""A schema by questions and answers, column by column; no value of the data is read."""

from collections.abc import Callable, Iterable

from smalldb.schema.drafting import column_text, file_line, toml
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.kinds import SPECS
from smalldb.schema.reading import parse_schema


def ask_schema(
    columns: Iterable[str],
    ask: Callable[[str], str],
    tell: Callable[[str], object],
    file: FileFormat = USUAL,
) -> str:
    """Ask what each column can hold, and return the schema as TOML text."""
    ignored, described, kinds = [], "", f"kind ({', '.join(SPECS)}; empty: ignore the column)"
    for name in columns:
        while True:
            tell(f"\n{name}")
            kind = ask(f"  {kinds}: ").strip()
            if not kind:
                ignored.append(name)
                break
            text = column_text(name, "\n".join(_answers(kind, ask)))
            try:
                parse_schema(text)
            except ValueError as error:
                tell(f"  {error}")
                continue
            described += text
            break
    if not described:
        raise ValueError("a schema needs at least one column")
    return f"ignore = [{', '.join(map(toml, ignored))}]\n{file_line(file)}{described}"


def _answers(kind: str, ask: Callable[[str], str]) -> Iterable[str]:
    yield f"kind = {toml(kind)}"
    for key, question in SPECS[kind].questions if kind in SPECS else ():
        answer = ask(f"  {question}: ").strip()
        if key in ("format", "unknown"):
            if answer:
                yield f"{key} = {toml(answer)}"
        elif key == "decimals":
            yield f"decimals = {answer or 0}"
        elif answer.startswith("bins "):
            yield f"bins = {answer.removeprefix('bins ').strip()}"
        else:
            parts = [part.strip() for part in answer.split(",") if part.strip()]
            whole = kind != "times" and all(part.lstrip("-").isdecimal() for part in parts)
            numbers = kind in ("cuts", "integers") or whole
            yield f"{key} = [{', '.join(part if numbers else toml(part) for part in parts)}]"
    if kind in SPECS and (gaps := ask("  gaps (empty: none; yes; or texts that mean one): ").strip()):
        texts = ", ".join(toml(part.strip()) for part in gaps.split(","))
        yield "missing = true" if gaps.lower() in ("y", "yes") else f"missing = [{texts}]"
