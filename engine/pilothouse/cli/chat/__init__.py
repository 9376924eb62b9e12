"""`pilothouse chat`: a conversation with an Agent in this terminal, every turn of it in the store."""
