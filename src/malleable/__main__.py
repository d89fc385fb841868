"""`python -m malleable` is `malleable`."""

from malleable.cli import main

if __name__ == "__main__":
    main()
