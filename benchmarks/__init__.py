"""Benchmarks: one script a question, results as JSON, tables generated from the JSON."""
