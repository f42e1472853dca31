"""What a graph looks like, in numbers, to choose formats by."""
