"""What is kept, and how; SQL lives here and nowhere else."""
