"""The databases that samples run on: MariaDB or MySQL, and SQLite."""
