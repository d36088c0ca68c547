"""Prints which devices JAX finds: platform, kind and number, as JSON.

In a process of its own, so that who asks takes no accelerator.
"""

import json

import jax


def main() -> None:
    """Prints the line."""
    found = jax.devices()
    print(json.dumps([found[0].platform, found[0].device_kind, len(found)]))


if __name__ == "__main__":
    main()
