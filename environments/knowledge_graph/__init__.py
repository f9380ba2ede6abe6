"""The knowledge graph environment of AgentBench: questions over a Freebase-style graph, answered with seven tools."""
