"""The workloads as users of a framework write them; a file imports its framework at once."""
