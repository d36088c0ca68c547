"""What all runs share: their configs, what they store, and how they are resumed."""
