"""Models of several languages (Wu, Conneau et al. 2020, §3.1 and §4): from a config to results."""
