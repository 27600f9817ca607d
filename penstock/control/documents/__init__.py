"""Documents: saved, judged, edited."""
