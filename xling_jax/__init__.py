"""xling_jax: why do masked language models trained on several languages become multilingual?"""

__version__ = "0.1.0"


def __getattr__(name: str):
    """`evaluate`, imported only when it is asked for, since reports need no JAX."""
    if name == "evaluate":
        from xling_jax.evaluators.language_pairs import evaluate

        return evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
