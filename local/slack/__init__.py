"""A stand-in for Slack that checks what it is sent."""
