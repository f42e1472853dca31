"""Full-batch training of a GCN on Reddit, or a synthetic graph shaped like it, through a cached plan."""
