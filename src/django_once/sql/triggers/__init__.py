"""Triggers: how the changes of a table become notifications, in the transaction that makes them."""
