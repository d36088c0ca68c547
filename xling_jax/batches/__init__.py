"""Token ids to batches."""
