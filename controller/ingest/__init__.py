"""Makes journals of what another program than nstorm has measured."""

# Of the rows of a file may be left out; more is no accident of a few rows.
MOST_FRAC = 0.01
