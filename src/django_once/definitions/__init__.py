"""Words: what a person declared, as pure values; nothing here asks a database."""
