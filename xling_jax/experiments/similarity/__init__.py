"""Are monolingual models alike? (Wu, Conneau et al. 2020, §5): from stored models to results."""
