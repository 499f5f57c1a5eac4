"""Results as people see them: tables, pictures and pages. No figure is computed here."""
