"""Results as people see them: tables, pictures, pages. No number is computed here."""
