"""Eight CPU devices for every test, so that sharding can be tested anywhere."""

import os

from xling_jax import devices

devices.set_cpu_devices(8)
os.environ.setdefault("MPLBACKEND", "Agg")
