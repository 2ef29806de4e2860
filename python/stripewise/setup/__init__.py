"""A first store from nothing but directories: what `stripewise init` checks, decides, writes and makes.

`checks` refuses what cannot be before anything is written; `classes` decides what is a disk and what an SSD;
`emulated` says what --emulate makes; `document` is the commented cluster.toml; `make` puts the store there.
"""
