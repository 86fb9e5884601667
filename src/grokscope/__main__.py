"""`python -m grokscope` and the `grokscope` command."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; without its libraries, say what to install."""
    try:
        from grokscope.cli import run
    except ModuleNotFoundError as error:
        print(
            f"grokscope: the command line needs {error.name}; install it with: pip install grokscope", file=sys.stderr
        )
        return 2
    except KeyboardInterrupt:  # before the command line itself could catch it
        print("grokscope: ended by Ctrl-C before anything was done", file=sys.stderr)
        return 130
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
