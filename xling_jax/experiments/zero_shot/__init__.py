"""Pretrained rows fine-tuned on labelled tasks and tested across languages, as an experiment."""
