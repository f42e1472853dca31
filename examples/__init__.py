"""Programs that use pyg_sparse as its users do; run them from the repository's root."""
