"""Stochastic bandits: upper confidence bounds, randomised policies, and what is known about their regret."""
