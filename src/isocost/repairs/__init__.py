"""From a tally to a rule that repairs scores."""
