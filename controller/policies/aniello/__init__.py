"""The schedulers of Aniello, Baldoni and Querzoni (002)."""
