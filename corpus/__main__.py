"""`python -m corpus` is the `corpus` command."""

from corpus.cli.main import main

if __name__ == "__main__":
    main()
