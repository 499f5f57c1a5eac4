"""Results as people see them: tables, pictures and pages. No number is computed here."""
