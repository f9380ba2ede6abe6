"""How the figures of a report are made, with the sources."""

METHODS = (
    "Scores. The figure of a pair is the environment's primary metric over its scored trials; a trial that ended "
    "in a fault (a server lost, an endpoint refused) has no score and enters no mean. ±: the standard error, with "
    "clusters of samples that share a world as units: Miller 2024, arXiv 2411.00640, section 2.2, with the factor "
    "for few clusters.",
    "Coverage and bounds. Coverage is the share of the planned trials that are scored. The bounds are the mean "
    "score with all missing scores 0, and with all 1.",
    "Comparisons. Differences are over the samples that both agents have scored. The test is the exact McNemar "
    "test where each sample was passed or failed once and is a cluster of its own, with the interval of Bonett "
    "and Price 2012; otherwise sign flips of whole clusters, with Student's t interval. The p-values are adjusted "
    "by Holm's method over all tests of this page. Detectable: the difference that would have been found with the "
    "given power.",
    "How trials ended. Shares are of the scored trials, in AgentBench's classes (Liu et al. 2023, arXiv "
    "2308.03688, section 4.3). Faults are counted beside them.",
    "AgentBench. The overall score is the mean over its eight tasks of the score in percent divided by the "
    "average score of the paper's models (arXiv 2308.03688, table 2). It is given for all eight tasks only.",
    "Costs. Money is tokens times the prices of the plan; without a price there is none. Costs of the tasks' own "
    "models are apart.",
)
COMPARISON_METHODS = METHODS[:3]
"""Those behind a comparison."""
