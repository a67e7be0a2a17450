"""How the files of a table are written: what a schema states under `file`, and options of commands."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, fields
from typing import final

from smalldb.files.inputs import is_url

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
COMMA = ","
QUOTES = ('"', "'", "")
UTF_8 = "utf-8"
# of one byte a character, all of ASCII in its place: fields can be split as bytes
_SINGLE = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("iso8859-1", "iso8859-2", "iso8859-5", "iso8859-7", "iso8859-9", "iso8859-15"),
    *("cp437", "cp850", "cp852", "koi8-r", "mac-roman"),
)
# none of these carries a state from one line to the next: a row is read the same beside any others
_WIDE = ("utf-16", "cp932", "shift_jis", "euc_jp", "gb18030", "gbk", "big5", "cp949", "euc_kr")
_ENCODINGS = (UTF_8, *_SINGLE, *_WIDE)
_SECRET = re.compile(r"//.*:.*@|[?&;](?!sslmode=)[^=]*=")  # a password, or an option that might be one


def _lone(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end  # no field may hold this


codecs.register_error("smalldb-lone", _lone)


@final
@dataclass(frozen=True, slots=True)
class FileFormat:
    """How a table stands in its file or database: public choices, each of some formats."""

    separator: str | None = None  # of CSV: one sign, "tab" or "space"; None: commas, or what the file states
    quote: str = '"'  # around fields of CSV that hold other signs: " or '; empty: none
    decimal: str = "."  # of the numbers in CSV: . or , (a column may state its own)
    encoding: str | None = None  # of CSV; None: UTF-8
    sheet: str | None = None  # of a workbook; None: its only one
    # of a database: a query (``SELECT ...``), or the name of a table or view; None: its only table
    query: str | None = None
    # where the table is, if nobody names it otherwise: the URL of a database, without a password
    url: str | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{each.name} must be a text, not {type(value).__name__}")
        if self.quote not in QUOTES:
            raise ValueError("quote must be one of \" ' or the empty text, for none")
        if self.decimal not in (".", ","):
            raise ValueError("decimal must be one of . ,")
        if self.separator is not None:
            object.__setattr__(self, "separator", as_separator(self.separator))
        if self.separator == self.quote:
            raise ValueError("separator and quote must be different signs")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", as_encoding(self.encoding))
        if self.sheet == "":
            raise ValueError("sheet must be the name of a sheet")
        if self.query is not None and not self.query.strip():
            raise ValueError("query must be a query, or the name of a table of a database")
        if self.url is not None and not is_url(self.url):
            raise ValueError(
                'url must be the URL of a database, such as "postgresql://host/name": name files as DATA'
            )
        if self.url is not None and _SECRET.search(self.url):  # nor is it shown
            raise ValueError(
                "url holds a password, or might: a schema is public; give the password by the environment or "
                "a file of the driver (PGPASSWORD, .pgpass), or the whole URL as DATA"
            )

    @property
    def codec(self) -> str:
        """The encoding, as Python names it."""
        return self.encoding or UTF_8

    @property
    def encoding_in_words(self) -> str:
        """The encoding, for people."""
        return self.codec.upper() if self.codec.startswith("utf") else self.codec

    @property
    def splits_as_bytes(self) -> bool:
        """Whether every sign of ASCII is one byte, and no other sign has such a byte."""
        return self.codec in (UTF_8, *_SINGLE)

    def stated(self) -> dict[str, str]:
        """Return what differs from the default, by its name."""
        values = ((each, getattr(self, each.name)) for each in fields(self))
        return {each.name: value for each, value in values if value != each.default}


USUAL = FileFormat()


def as_separator(text: str) -> str:
    r"""Read a separator as an option or a schema writes it: one sign, or the name of one that is not seen.

    >>> as_separator("tab"), as_separator(r"\t"), as_separator(";"), as_separator(r"\x01")
    ('\t', '\t', ';', '\x01')
    """
    sign = {r"\t": "\t", "tab": "\t", "space": " "}.get(text.lower(), text)
    if code := re.fullmatch(r"\\x([0-9a-fA-F]{2})", sign):
        sign = chr(int(code[1], 16))
    if not is_separator(sign):
        raise ValueError(
            "separator must be one sign such as , ; | and not a letter, digit or quote; or tab or space"
        )
    return sign


def is_separator(sign: str) -> bool:
    """Tell whether a text can stand between fields."""
    return (
        len(sign) == 1 and not sign.isalnum() and sign not in '"\r\n\x00' and not "\ud800" <= sign <= "\udfff"
    )


def as_encoding(text: str) -> str:
    """Return the name of an encoding as Python has it; ValueError: it is none that is read.

    >>> as_encoding("latin-1"), as_encoding("Windows-1252"), as_encoding("UTF8")
    ('iso8859-1', 'cp1252', 'utf-8')
    """
    try:
        name = codecs.lookup(text).name
    except (LookupError, ValueError):
        name = ""
    name = {"utf-8-sig": UTF_8, "utf-16-le": "utf-16"}.get(name, name)
    if name not in _ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(_ENCODINGS)}")
    return name


def agreed(option: FileFormat, schema: FileFormat) -> FileFormat:
    """Return what options and a schema state together; ValueError: they state two."""
    for name, value in option.stated().items():
        stated = getattr(schema, name)
        if name in schema.stated() and stated != value:
            show = named if name == "separator" else str
            raise ValueError(f"{name}: the schema says {show(stated)}, not {show(value)}")
    return FileFormat(**schema.stated() | option.stated())


def named(separator: str) -> str:
    """Write a separator as an option takes it: a tab and a space are not seen."""
    return {"\t": "tab", " ": "space"}.get(separator, repr(separator))


def errors_of(encoding: str) -> str:
    """Return how bytes that an encoding has not are read: as what no field may hold."""
    return "surrogateescape" if encoding == UTF_8 else "smalldb-lone"
