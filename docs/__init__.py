"""Makes `docs.site` importable by its name. Not part of the package, nor of the site."""
