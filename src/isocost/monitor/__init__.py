"""Whether what a rule promises still holds after deployment."""
