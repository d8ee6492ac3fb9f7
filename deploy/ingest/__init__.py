"""Makes journals of what something else than nstorm has measured."""
