"""The model-driven schedulers of Shukla and Simmhan (001)."""
