"""Zero-shot transfer: trained on one language, tested on the others (W&C §3.2, D&S §5)."""
