"""`python -m stripewise`: the same program as the `stripewise` command."""

from .cli.main import main

if __name__ == "__main__":
    main()
