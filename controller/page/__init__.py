"""A page that shows the cluster as `nstorm status` does, live, in a process of its own.

It reads what any command reads, so that no visitor can disturb a controller.
"""
