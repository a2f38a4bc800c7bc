"""What lies outside and is not a model host: who is told of what happens here."""
