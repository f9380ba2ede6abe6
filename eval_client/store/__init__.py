"""What a run keeps, and who may write it: on SQLite, PostgreSQL, MySQL or MariaDB."""
