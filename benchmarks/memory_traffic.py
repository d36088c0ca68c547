"""The bytes that a program compiled for a TPU moves to and from its memory (HBM), by operation.

XLA's own count (`cost_analysis`) also includes data that stays in the core's fast memory. Here the
arguments and results in HBM count for every instruction of the compiled program, once for each
round of the loop around it; of an array that holds a part for each round only that part counts.
"""

import collections
import math
import re
from collections.abc import Iterator

BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
FAST = "S("  # in the layout of an array in another memory than HBM
FREE = {"parameter", "tuple", "get-tuple-element", "bitcast", "constant"}
ENDS = ("-done", "-update")  # of operations that count at their "-start"
_ARRAY = re.compile(rf"({'|'.join(BYTES)})\[([\d,]*)\](?:\{{([^}}]*)\}})?")
_INSTRUCTION = re.compile(
    r"(?:ROOT )?%(?P<name>[\w.-]+) = (?P<type>\(.*?\)|\S+) (?P<kind>[\w-]+)\((?P<arguments>[^)]*)\)"
    r"(?P<rest>.*)"
)


def arrays(kind: str, rounds: int = 1) -> Iterator[tuple[int, bool]]:
    """For each array of a type: the bytes in one round of a loop, and whether it is in HBM."""
    for name, sizes, layout in _ARRAY.findall(kind):
        shape = [int(size) for size in sizes.split(",") if size]
        parts = rounds if shape[:1] == [rounds] else 1
        yield math.prod(shape) * BYTES[name] // parts, FAST not in layout


def in_memory(kind: str, rounds: int = 1) -> int:
    """The bytes of a type's arrays that are in HBM, in one of a loop's rounds."""
    return sum(size for size, is_there in arrays(kind, rounds) if is_there)


def computations(program: str) -> tuple[dict[str, list[re.Match]], str]:
    """The instructions of each computation of a program in HLO, and the name of its entry."""
    found: dict[str, list[re.Match]] = {}
    entry = name = ""
    for line in program.splitlines():
        if line.endswith("{") and line.startswith(("ENTRY", "%")):
            name = line.removeprefix("ENTRY ").split()[0].lstrip("%")
            found[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name and (instruction := _INSTRUCTION.match(line.strip())):
            found[name].append(instruction)
    return found, entry


def traffic(program: str) -> collections.Counter[str]:
    """Bytes by the operation's name in the program's source, for all layers together; of
    conditionals every branch counts."""
    named, entry = computations(program)
    counted: collections.Counter[str] = collections.Counter()

    def walk(computation: str, rounds: int, times: int) -> None:
        types = {each["name"]: each["type"] for each in named[computation]}
        for each in named[computation]:
            if each["kind"] == "while":
                condition, body = re.findall(r"(?:condition|body)=%([\w.-]+)", each["rest"])
                own = limit(named[condition])
                walk(body, own, times * own)
            elif each["kind"] == "conditional":
                for branches in re.findall(r"branch_computations=\{([^}]*)\}", each["rest"]):
                    for branch in branches.split(","):
                        walk(branch.strip().lstrip("%"), rounds, times)
            elif each["kind"] not in FREE and not each["kind"].endswith(ENDS):
                counted[source(each["rest"])] += times * moved(each, types, rounds)

    walk(entry, 1, 1)
    return counted


def limit(condition: list[re.Match]) -> int:
    """The rounds of a loop: the number that its condition compares with; 1 if unknown."""
    found = [int(each["arguments"]) for each in condition if each["kind"] == "constant"]
    return max(found, default=1)


def moved(instruction: re.Match, types: dict[str, str], rounds: int) -> int:
    """The bytes that an instruction moves in one of a loop's rounds."""
    if instruction["kind"] in ("copy-start", "slice-start"):  # of one array, between memories
        found = arrays(instruction["type"], rounds)
        sizes = [(size, is_there) for size, is_there in found if size > 4]
        least = min((size for size, _ in sizes), default=0)
        return least * (2 if all(is_there for _, is_there in sizes) else 1)
    names = re.findall(r"%([\w.-]+)", instruction["arguments"])
    kinds = [instruction["type"], *(types.get(name, "") for name in names)]
    return sum(in_memory(kind, rounds) for kind in kinds)


def source(rest: str) -> str:
    """An operation's name in the source: its last two parts, after "gradient of " if it is of the
    gradient."""
    path = re.search(r'op_name="([^"]*)"', rest)
    if path is None:
        return "copies and slices"
    parts = re.split(r"closed_call/|while/body/", path[1])[-1].split("/")
    ours = [
        p
        for p in parts
        if not re.fullmatch(r"\d+|layers|jvp\(\w*\)|transpose\(jvp.*|checkpoint", p)
    ]
    gradient = "gradient of " if "transpose(" in path[1] else ""
    return gradient + "/".join(ours[-2:])
