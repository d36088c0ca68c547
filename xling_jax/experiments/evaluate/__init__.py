"""How multilingual are some encoders? From stored models to results."""
