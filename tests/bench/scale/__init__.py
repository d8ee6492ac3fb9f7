"""Measures what a large cluster costs ZooKeeper, the controller and an agent.

The ZooKeeper, the controller and the one agent that is measured are real. The other agents, the
JVMs and Nimbus are imitated with their real codecs, at their real periods, over one session each.
"""
