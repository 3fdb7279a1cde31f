"""What `once bench` is made of: a database of its own, its tasks, its workers and its measures."""
