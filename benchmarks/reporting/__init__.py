"""What results say: tables, figures, and the bars that minigraph is held to."""
