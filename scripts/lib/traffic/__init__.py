"""What the suites that load, attack and break a server have in common. Standard library only."""
