"""Traces that other programs made, as Stripewise's own: `stripewise import FORMAT FILE.. -o DIR`.

A reader per format yields rows of numpy arrays (`records.ROW`) process by process; `writer` puts them where `stripewise
collect` would, so that every verb reads them unchanged. What a format cannot tell is a reason in meta.json (`partial`).
"""
