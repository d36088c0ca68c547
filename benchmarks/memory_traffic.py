"""The bytes that a program compiled for a TPU moves to and from its memory (HBM), by operation.

XLA's own count (`cost_analysis`) has what stays in the core's fast memory too. Here every
instruction of the compiled program counts its arguments and results that are in HBM. The body of a
loop counts once. That is right for arrays that are read and written a part at a time, as those of
attention and logits; what each round makes and reads again in HBM counts for one round alone. A
step of several microbatches (`batches.accumulate`) cannot be counted so.
"""

import collections
import math
import re
from collections.abc import Iterator

BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
FAST = "S("  # in a layout: another memory than HBM
FREE = {"parameter", "tuple", "get-tuple-element", "bitcast", "constant"}
ENDS = ("-done", "-update")  # of what a "-start" has counted
_ARRAY = re.compile(rf"({'|'.join(BYTES)})\[([\d,]*)\](?:\{{([^}}]*)\}})?")
_INSTRUCTION = re.compile(
    r"(?:ROOT )?%(?P<name>[\w.-]+) = (?P<type>\(.*?\)|\S+) (?P<kind>[\w-]+)\((?P<arguments>[^)]*)\)"
    r"(?P<rest>.*)"
)


def arrays(kind: str) -> Iterator[tuple[int, bool]]:
    """The bytes of each array of a type, and whether it is in HBM."""
    for name, sizes, layout in _ARRAY.findall(kind):
        number = math.prod(int(size) for size in sizes.split(",") if size)
        yield number * BYTES[name], FAST not in layout


def in_memory(kind: str) -> int:
    """The bytes of a type's arrays that are in HBM."""
    return sum(size for size, is_there in arrays(kind) if is_there)


def computations(program: str) -> tuple[dict[str, list[re.Match]], str]:
    """The instructions of each computation of a program in HLO, and the name of the first."""
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
    """Bytes by what the program's source calls the operation, layers taken together."""
    named, entry = computations(program)
    counted: collections.Counter[str] = collections.Counter()

    def walk(computation: str) -> None:
        types = {each["name"]: each["type"] for each in named[computation]}
        for each in named[computation]:
            if each["kind"] == "while":
                walk(re.findall(r"body=%([\w.-]+)", each["rest"])[0])
            elif each["kind"] == "conditional":
                for branches in re.findall(r"branch_computations=\{([^}]*)\}", each["rest"]):
                    for branch in branches.split(","):
                        walk(branch.strip().lstrip("%"))
            elif each["kind"] not in FREE and not each["kind"].endswith(ENDS):
                counted[source(each["rest"])] += moved(each, types)

    walk(entry)
    return counted


def moved(instruction: re.Match, types: dict[str, str]) -> int:
    """The bytes that an instruction moves."""
    if instruction["kind"] in ("copy-start", "slice-start"):  # of one array, between memories
        sizes = [(size, is_there) for size, is_there in arrays(instruction["type"]) if size > 4]
        least = min((size for size, _ in sizes), default=0)
        return least * (2 if all(is_there for _, is_there in sizes) else 1)
    names = re.findall(r"%([\w.-]+)", instruction["arguments"])
    return in_memory(instruction["type"]) + sum(in_memory(types.get(n, "")) for n in names)


def source(rest: str) -> str:
    """What the source calls an operation: its last parts, and whether it is of the gradient."""
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
