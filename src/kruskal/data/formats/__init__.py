"""One reader and writer per format family, all with the same three functions (see `base.Format`)."""
