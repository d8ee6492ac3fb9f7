"""The scheduler for machines that differ of Nasiri and others (000)."""
