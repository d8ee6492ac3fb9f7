"""Runs configurations over recorded load, tick by tick, as fast as may be."""
