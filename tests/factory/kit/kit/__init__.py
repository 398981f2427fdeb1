"""A small package with tests of several styles, whose module `tools` is replaced by forgers."""

from .tools import Box, entries, entry, headline, mean, parse, slug, spans, terms

__all__ = ["Box", "entries", "entry", "headline", "mean", "parse", "slug", "spans", "terms"]
