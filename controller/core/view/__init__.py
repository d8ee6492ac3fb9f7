"""All that one decision looks at, with the index of traffic that is kept for the next one."""
