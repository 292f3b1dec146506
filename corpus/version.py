"""The version of the code, recorded in every manifest."""

__version__ = "0.1.0"
