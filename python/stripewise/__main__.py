"""`python -m stripewise`: the same program as the `stripewise` command."""

from .cli.entry import main

if __name__ == "__main__":
    main()
