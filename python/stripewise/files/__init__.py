"""Files as the package reads and writes them: parts of a store, documents of users, checked fields, durable writes."""
