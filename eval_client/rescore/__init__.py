"""`proctor rescore`: scores the answers of a run again, in this process; no agent is asked."""
