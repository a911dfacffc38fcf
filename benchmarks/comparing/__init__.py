"""What each compiler made of one workload, side by side."""
