"""The shell's verbs, as a person or a program would use them."""
