"""The databases that samples are played on: MariaDB or MySQL, and SQLite."""
