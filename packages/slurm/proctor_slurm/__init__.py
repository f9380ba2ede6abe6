"""Plays a plan as a job of SLURM: writes the batch script, and has what runs in the job; needs the extra `slurm`."""
