"""Rules and tallies as queries for data warehouses."""
