"""Checks of stored records: unchanged since, of the right types, and of a known experiment."""

import hashlib
import json
import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

T = TypeVar("T")
SEAL = "sha256"
RESTORE = "put back a copy of it, or choose another --workdir"


def finite(value: Any) -> Any:
    """A value as JSON can hold it: numbers that are not finite become None."""
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _without_nulls(values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    return {name: value for name, value in values.items() if finite(value) is not None}


Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
# Named numbers; null and numbers that are not finite (a loss that overflowed) are left out.
Numbers = Annotated[Mapping[str, float], BeforeValidator(_without_nulls)]


def typed(
    kind: TypeAdapter[T],
    value: Any,
    where: str,
    way_out: str = f"it is damaged: {RESTORE}",
    names: Mapping[str, str] | None = None,
) -> T:
    """A value of JSON as a type, without conversions such as from 1 to true.

    `names` has the fields of the type that have another name in the file. ValueError names the file
    (`where`), the first field that is wrong, its value, and the way out.
    """
    try:
        return kind.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
    field = ".".join(str((names or {}).get(str(part), part)) for part in found["loc"])
    said = found["msg"].removeprefix("Value error, ")
    if found["type"] == "unexpected_keyword_argument":
        said = "no such field is known"
    if found["type"] == "missing":
        raise ValueError(f"{where}: {field} is missing; {way_out}")
    if found["type"] != "value_error":
        said = f"{field}{'=' * bool(field)}{reprlib.repr(found['input'])}: {said}"
    raise ValueError(f"{where}: {said}; {way_out}")


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with a hash of its content, see `require_unchanged`."""
    return {**record, SEAL: _sha256(record)}


def require_unchanged(record: Any, where: str) -> None:
    """Raises ValueError if a record has changed since it was `sealed`; older ones have no hash."""
    if isinstance(record, Mapping) and record.get(SEAL) is not None:
        if record[SEAL] != _sha256(record):
            raise ValueError(f"{where} is not what was written there: {RESTORE}")


def _sha256(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != SEAL}
    as_read = json.loads(json.dumps(content))
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Identity:
    """Identifies the experiment that stored something.

    Attributes:
      experiment: its name.
      fingerprint: a hash of what decides its results; "" if that is not known.
      earlier: the hashes before its table grew.
      is_sealed: whether everything that it stores is sealed; in older runs nothing is.
    """

    experiment: str = ""
    fingerprint: str = ""
    earlier: tuple[str, ...] = ()
    is_sealed: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Identity":
        return cls(
            str(config.get("experiment", "")),
            config.get("fingerprint", ""),
            tuple(config.get("earlier_fingerprints", ())),
            SEAL in config,
        )

    def require(self, fingerprint: str, where: str) -> None:
        """Raises ValueError for a fingerprint of another experiment; "" (older runs) fits any."""
        known = (self.fingerprint, *self.earlier)
        if fingerprint and self.fingerprint and fingerprint not in known:
            raise ValueError(
                f"{where} is of another experiment (fingerprint {fingerprint}) than config.json "
                f"({self.fingerprint}): put back the config.json that it was stored with, or "
                "choose another --workdir"
            )


UNKNOWN = Identity()  # accepts any fingerprint


def known(kind: TypeAdapter[T], value: Any, where: str, identity: Identity = UNKNOWN) -> T:
    """A sealed record of JSON as a type that may have a `fingerprint`; ValueError if it was changed
    or damaged, or is of another experiment."""
    require_unchanged(value, where)
    record = typed(kind, value, where)
    identity.require(getattr(record, "fingerprint", ""), where)
    return record
