"""What each part does, by itself."""
