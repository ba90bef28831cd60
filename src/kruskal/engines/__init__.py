"""Who runs it: threads over shards, the chain with its trace and kept draws, checkpoints, progress."""
