"""All that one decision looks at, kept such that the next one need not start anew."""
