"""Policies of papers, one file each, under the names that their authors gave them."""
