"""Many videos at once: which files are meant, the jobs made of them, where their tokens go, and who does the work."""
