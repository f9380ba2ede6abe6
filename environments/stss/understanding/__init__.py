"""How well the characters understand the labelled utterances: what they answer, and what talks come to."""
