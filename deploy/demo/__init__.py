"""The main job on a real cluster, shown live and reported: `nstorm demo`."""
