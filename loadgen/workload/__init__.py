"""What is sent, and when: prompts, request bodies, arrivals."""
