"""The evaluation client: plans a run, assigns and plays its trials, journals them and reports."""
