"""The worlds, and the vocabulary that all parts share."""

SCALES = {
    "card_game": {"score": (0.0, 1.0)},
    "db": {"overall_cat_accuracy": (0.0, 1.0)},
    "mind2web": {"step_sr": (0.0, 100.0)},
    "simulbench": {
        "strict_mean": (1.0, 10.0),
        "rules_mean": (1.0, 10.0),
        "difference": (-100.0, 100.0),
        "distinct": (0.0, 1.0),
    },
}
"""Environment -> `scales` of its class, for reports, which import no environment: all ten take 0.9 s of CPU."""
