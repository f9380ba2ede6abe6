"""The database environment of AgentBench: questions about, and changes to, one table in a MySQL-like database."""
