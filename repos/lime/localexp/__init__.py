"""Local explanations of classifiers: what a prediction rests on, and which classifier deserves trust."""
