"""Models and tokenizers in the formats of `transformers`, XLM's included."""
