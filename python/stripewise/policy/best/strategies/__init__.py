"""What is proposed: each strategy a file."""
