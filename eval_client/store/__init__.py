"""The store of runs, in SQLite, PostgreSQL, MySQL or MariaDB: tables, journal, locks, shards, endpoint pools."""
