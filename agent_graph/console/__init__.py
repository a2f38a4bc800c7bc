"""The door for people: pages in a browser that show what waits for a decision and how runs go, and take decisions."""
