"""The sections of a report, one file each; `page.SECTIONS` gives their order."""
