"""Synthetic graphs for tests, benchmarks and examples."""

from .shaped import SHAPES, Shape, ShapedGraph, shape_of, shaped_graph
from .shaped_data import shaped_data

__all__ = ["SHAPES", "Shape", "ShapedGraph", "shape_of", "shaped_data", "shaped_graph"]
