"""Models as `transformers` and XLM read and write them."""
