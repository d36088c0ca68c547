"""What every run shares: its config, what it stores, and how it is gone on with."""
