"""Prints which devices JAX finds: platform, kind and number, as JSON.

It is a process of its own, so that the program that asks does not occupy an accelerator.
"""

import json

import jax


def main() -> None:
    """Prints the line."""
    found = jax.devices()
    print(json.dumps([found[0].platform, found[0].device_kind, len(found)]))


if __name__ == "__main__":
    main()
