"""What differs from one operating system to the next, each part found by looking for it; the standard library alone."""
