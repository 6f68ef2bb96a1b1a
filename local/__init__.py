"""The rehearsal on one machine: stand-ins, a real deployment, and what is told of it."""
