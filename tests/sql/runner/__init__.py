"""A sqllogictest runner for merutable: DuckDB's dialect, inside real DuckDB, in several placements."""
