"""Generated from proto/ by `make gen`; never edited by hand."""
