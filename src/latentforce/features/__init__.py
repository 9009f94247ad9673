"""Features, the second axis: ways to summarise a process by finitely many standard normals."""
