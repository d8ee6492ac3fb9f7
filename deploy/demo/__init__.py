"""The main job on a real cluster, shown live and reported: `python -m deploy demo`."""
