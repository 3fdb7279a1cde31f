"""The verifier: reads rows, ledger and logs by itself, and shares no code with what it audits."""
