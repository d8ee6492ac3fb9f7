"""N-Storm and OTD (004)."""
