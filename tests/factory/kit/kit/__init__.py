"""A small package with tests of several styles, whose module `tools` is replaced by forgers."""

from .tools import Box, mean, parse, slug, spans

__all__ = ["Box", "mean", "parse", "slug", "spans"]
