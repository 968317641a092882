"""The group coordinator: consumer groups and committed offsets."""
