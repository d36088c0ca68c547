"""xling_jax: why do masked language models trained on several languages become multilingual?"""

__version__ = "0.1.0"
