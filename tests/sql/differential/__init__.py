"""The same statements on a merutable and on a native DuckDB database, compared one by one: see ../differential.py."""
